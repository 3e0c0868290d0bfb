"""Which part of a retrieval a span is, and whose words it speaks.

Decided by attributes alone, never by a schema URL: those lie. Where a span is written in two
dialects at once, the richer one is read first: OpenInference, then OTel GenAI, then OpenLLMetry.
"""

import re
from typing import Final, Literal

from lookup_audit.collector.otlp.spans import Attributes, Span
from lookup_audit.schemas.names import SourceFormat

Role = Literal["retriever", "reranker", "embedding", "tool", "other"]

OPENINFERENCE: Final[SourceFormat] = "otlp/openinference"
GENAI: Final[SourceFormat] = "otlp/genai"
OPENLLMETRY: Final[SourceFormat] = "otlp/openllmetry"
VECTOR_DB: Final[SourceFormat] = "otlp/vector-db"
OWN: Final[SourceFormat] = "otlp/lookup-audit"

_KINDS: Final[dict[str, Role]] = {
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "EMBEDDING": "embedding",
    "TOOL": "tool",
}
_OPERATIONS: Final[dict[str, Role]] = {
    "retrieval": "retriever",
    "rerank": "reranker",
    "embeddings": "embedding",
    "execute_tool": "tool",
}
_VECTOR_DATABASES: Final = frozenset(
    {"chroma", "chromadb", "lancedb", "marqo", "milvus", "pinecone", "qdrant", "weaviate"}
)
_SEARCHES: Final = re.compile(r"query|search|near|hybrid|recommend", re.IGNORECASE)
# LlamaIndex under OpenLLMetry: the class and the kind of the span are one name.
_LLAMA_RETRIEVER: Final = re.compile(r"\w*Retriever\w*\.(?:task|workflow)")


def classify(span: Span) -> tuple[Role, SourceFormat]:
    """The span's part and its dialect; ``other`` for whatever is no part of a retrieval."""
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    if isinstance(kind, str) and kind:
        role = _KINDS.get(kind.upper(), "other")
        if role != "other" or "gen_ai.operation.name" not in attributes:
            return role, OPENINFERENCE
    operation = attributes.get("gen_ai.operation.name")
    if operation == "vector_db_retrieve":
        return "retriever", OPENLLMETRY
    if isinstance(operation, str) and operation in _OPERATIONS:
        is_traceloop = "traceloop.span.kind" in attributes
        return _OPERATIONS[operation], OPENLLMETRY if is_traceloop else GENAI
    name = attributes.get("traceloop.entity.name")
    if isinstance(name, str) and _LLAMA_RETRIEVER.fullmatch(name):
        return "retriever", OPENLLMETRY
    if _searches_vectors(attributes, span.name):
        return "retriever", VECTOR_DB
    if any(key.startswith("lookup_audit.retrieval.") for key in attributes):
        return "retriever", OWN
    return "other", OWN


def _searches_vectors(attributes: Attributes, name: str) -> bool:
    system = attributes.get("db.system", attributes.get("db.system.name"))
    if not isinstance(system, str) or system.lower() not in _VECTOR_DATABASES:
        return False
    operation = attributes.get("db.operation", attributes.get("db.operation.name"))
    return _SEARCHES.search(operation if isinstance(operation, str) else name) is not None
