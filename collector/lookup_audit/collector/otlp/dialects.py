"""The four dialects and our own attributes, each into the same reading.

``collector/README.md`` holds the same mapping as a table.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lookup_audit.collector.otlp import documents as shapes
from lookup_audit.collector.otlp.documents import REDACTED, Document, read_json
from lookup_audit.collector.otlp.reading import (
    Reading,
    facts_of,
    first_text,
    query_of_json,
    suspect_value_limit,
)
from lookup_audit.collector.otlp.roles import (
    GENAI,
    OPENINFERENCE,
    OPENLLMETRY,
    OWN,
    VECTOR_DB,
    Role,
)
from lookup_audit.collector.otlp.spans import Span, count_of
from lookup_audit.schemas.names import SourceDegradation, SourceFormat

_HITS: Final = ("db.query.result.", "db.search.result.")


def read_span(span: Span, role: Role, dialect: SourceFormat) -> Reading:
    """Read one span of a retrieval; a second dialect on it fills what the first leaves open."""
    reading = Reading(span, dialect)
    order = [OWN, dialect, *(other for other in _READERS if other not in (OWN, dialect))]
    for each in order:
        # A hidden text is hidden: no other attribute may give it back.
        _READERS[each](reading, role)
    if reading.query_redacted:
        reading.query = None
    if suspect_value_limit(span.attributes):
        reading.notes = reading.notes | {SourceDegradation.VALUE_LIMIT_SUSPECTED}
    return reading


def _read_openinference(reading: Reading, role: Role) -> None:
    span, attributes = reading.span, reading.span.attributes
    if "openinference.span.kind" not in attributes:
        return
    reading.class_name = span.name
    if role == "reranker":
        reading.documents = shapes.flattened(attributes, "reranker.output_documents")
        reading.inputs = shapes.flattened(attributes, "reranker.input_documents")
        reading.top_k = count_of(attributes.get("reranker.top_k"))
        reading.model = first_text(attributes, "reranker.model_name")
        reading.set_query(attributes.get("reranker.query"))
    elif role == "embedding":
        reading.model = first_text(attributes, "embedding.model_name")
        reading.set_query(attributes.get("embedding.embeddings.0.embedding.text"))
    else:
        reading.documents = shapes.flattened(attributes, "retrieval.documents")
        _complete_from_output(reading)
        arguments = facts_of(attributes, "input.value")
        reading.top_k = count_of(attributes.get("retrieval.top_k", arguments.get("top_k")))
        facts = facts_of(attributes, "metadata")
        reading.model = first_text(facts, "ls_embedding_model", "ls_embedding_provider")
        reading.data_source = first_text(facts, "ls_vector_store_provider", "ls_retriever_name")
    given = attributes.get("input.value")
    if attributes.get("input.mime_type") == "application/json":
        reading.set_query(query_of_json(given))
    else:
        reading.set_query(given)


def _complete_from_output(reading: Reading) -> None:
    """Ids and emptiness that LangChain and LlamaIndex tell in the output alone.

    Never where anything is hidden: the output then still holds what the attributes hide.
    """
    output = reading.span.attributes.get("output.value")
    if output == REDACTED or reading.is_redacted:
        return
    found = read_json(output)
    listed = found.get("documents") if isinstance(found, dict) else found
    if not isinstance(listed, list):
        return
    if not listed and reading.documents is None:
        reading.documents = []
        return
    told = shapes.from_list(item for item in listed if isinstance(item, dict))
    if len(told) != len(listed) or not told:
        return
    if reading.documents is None and not reading.span.dropped_attributes:
        reading.documents = told
        return
    for document in reading.documents or []:
        if document.index < len(told):
            other = told[document.index]
            if document.content is None or document.content == other.content:
                document.id = document.id or other.id


def _read_genai(reading: Reading, role: Role) -> None:
    attributes = reading.span.attributes
    if "gen_ai.operation.name" not in attributes:
        return
    reading.set_query(attributes.get("gen_ai.retrieval.query.text"))
    if role == "embedding":
        reading.model = reading.model or first_text(attributes, "gen_ai.request.model")
        return
    if role == "reranker":
        reading.model = reading.model or first_text(attributes, "gen_ai.request.model")
    for name in ("gen_ai.retrieval.documents", "gen_ai.rerank.documents"):
        listed = read_json(attributes.get(name))
        if isinstance(listed, list) and not reading.is_redacted:
            _take_documents(reading, shapes.from_list(listed))
    if reading.top_k is None:
        reading.top_k = count_of(attributes.get("gen_ai.retrieval.top_k"))
    if reading.top_k is None:
        reading.top_k = count_of(attributes.get("gen_ai.request.top_k"))
    provider = first_text(attributes, "gen_ai.provider.name")
    reading.class_name = reading.class_name or provider
    reading.model = reading.model or first_text(attributes, "gen_ai.request.model")
    reading.data_source = (
        reading.data_source or first_text(attributes, "gen_ai.data_source.id") or provider
    )


def _read_openllmetry(reading: Reading, role: Role) -> None:
    attributes = reading.span.attributes
    if not any(key.startswith("traceloop.") for key in attributes):
        return
    reading.class_name = first_text(attributes, "traceloop.entity.name") or reading.class_name
    for name in ("traceloop.entity.input", "gen_ai.task.input"):
        given = attributes.get(name)
        reading.set_query(REDACTED if given == REDACTED else query_of_json(given))
    prefix = "traceloop.association.properties."
    reading.model = reading.model or first_text(
        attributes, prefix + "ls_embedding_model", prefix + "ls_embedding_provider"
    )
    store = first_text(attributes, prefix + "ls_vector_store_provider")
    reading.data_source = store or reading.data_source
    if role != "retriever":
        return
    for name in ("traceloop.entity.output", "gen_ai.task.output"):
        found = read_json(attributes.get(name))
        listed = found.get("documents") if isinstance(found, dict) else found
        if isinstance(listed, list) and not reading.is_redacted:
            _take_documents(reading, shapes.from_list(listed))


def _read_vector_db(reading: Reading, role: Role) -> None:
    attributes = reading.span.attributes
    system = first_text(attributes, "db.system", "db.system.name")
    if not system or role != "retriever":
        return
    found: list[Document] = []
    for event in reading.span.events:
        for prefix in _HITS:
            if event.name == prefix.removesuffix("."):
                members = {k.removeprefix(prefix): v for k, v in event.attributes.items()}
                found.append(shapes.make_document(len(found), members))
    if found:
        _take_documents(reading, found)
    for name in (
        "db.vector.query.top_k",
        f"db.{system}.query.n_results",
        f"db.{system}.query.top_k",
        f"db.{system}.search.limit",
    ):
        if reading.top_k is None:
            reading.top_k = count_of(attributes.get(name))
    collection = first_text(
        attributes, f"{system}.search.collection_name", "db.collection.name", "db.vector.collection"
    )
    reading.data_source = reading.data_source or "/".join(filter(None, (system, collection)))
    reading.class_name = reading.class_name or f"{system} vector database"


def _read_own(reading: Reading, role: Role) -> None:
    reading.set_query(reading.span.attributes.get("lookup_audit.retrieval.query"))


def _take_documents(reading: Reading, told: list[Document]) -> None:
    """Take a second telling of the documents: it only fills what the first leaves open."""
    if reading.documents is None:
        reading.documents = told
        return
    by_index: Mapping[int, Any] = {document.index: document for document in told}
    if len(told) != len(reading.documents):
        return
    for document in reading.documents:
        other = by_index.get(document.index)
        if other is not None and not document.is_redacted:
            document.id = document.id or other.id
            document.content = other.content if document.content is None else document.content
            if document.score is None:
                document.score, document.score_name = other.score, other.score_name


_READERS: Final[dict[SourceFormat, Callable[[Reading, Role], None]]] = {
    OPENINFERENCE: _read_openinference,
    GENAI: _read_genai,
    OPENLLMETRY: _read_openllmetry,
    VECTOR_DB: _read_vector_db,
    OWN: _read_own,
}
