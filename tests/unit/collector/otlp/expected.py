"""What each sample must become, written down from its payload and the mapping table.

Not made by the mapper: change an entry only after reading the payload. The knowledge base of the
samples is small; its chunks are listed once. ``n`` in a time is nanoseconds of the payload.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

Event = dict[str, Any]

NAMESPACE = UUID("6f1c43a8-54c2-5f0e-9d4b-0c1a7be3f9a1")
QUESTION = "How many unused vacation days can I carry over to next year?"
WIKI = "https://wiki.example.com/"

# chunk id: (document id, address, page, language, updated, text)
CHUNKS: dict[str, tuple[str, str, int, str, str, str]] = {
    "hr-policy-007#c1": (
        "hr-policy-007",
        WIKI + "hr/policy-007#vacation",
        3,
        "en",
        "2026-04-02",
        "Vacation carry-over: up to 10 unused days move to the next calendar year; "
        "the rest expire on 31 March.",
    ),
    "hr-policy-007#c2": (
        "hr-policy-007",
        WIKI + "hr/policy-007#sick",
        4,
        "en",
        "2026-04-02",
        "Sick leave requires a medical certificate from the third day of absence.",
    ),
    "hr-policy-012#c1": (
        "hr-policy-012",
        WIKI + "hr/policy-012#otpusk",
        1,
        "ru",
        "2025-11-19",
        "Перенос отпуска: неиспользованные дни (не более 10) переходят на следующий год.",
    ),
    "legal-gdpr-002#c7": (
        "legal-gdpr-002",
        WIKI + "legal/gdpr-002#dsar",
        12,
        "en",
        "2026-05-20",
        "A data subject access request must be answered within one month (GDPR Art. 12(3)).",
    ),
    "fin-guide-003#c4": (
        "fin-guide-003",
        WIKI + "finance/guide-003#travel",
        9,
        "en",
        "2026-01-15",
        "Travel expenses above EUR 500 need prior approval from the cost centre owner.",
    ),
    "fac-faq-001#c1": (
        "fac-faq-001",
        WIKI + "facilities/faq-001#rooms",
        1,
        "en",
        "2024-08-30",
        "Meeting rooms are booked in the calendar; no-shows are released after 10 minutes.",
    ),
    "it-sec-021#c2": (
        "it-sec-021",
        WIKI + "it/sec-021#passwords",
        2,
        "en",
        "2026-02-27",
        "Passwords must have at least 14 characters and be rotated after a suspected compromise.",
    ),
    "it-sec-021#c3": (
        "it-sec-021",
        WIKI + "it/sec-021#2fa",
        3,
        "en",
        "2026-02-27",
        "Two-factor authentication is mandatory for remote access (VPN) and e-mail.",
    ),
}
VACATION, SICK, OTPUSK = "hr-policy-007#c1", "hr-policy-007#c2", "hr-policy-012#c1"
GDPR, TRAVEL, ROOMS = "legal-gdpr-002#c7", "fin-guide-003#c4", "fac-faq-001#c1"
PASSWORDS, TWO_FACTOR = "it-sec-021#c2", "it-sec-021#c3"

LANGCHAIN = ("rag-langchain", "openinference.instrumentation.langchain", "0.1.80")
GENAI_LANGCHAIN = ("rag-langchain", "opentelemetry.instrumentation.genai.langchain", "1.3b0")
GENAI_LLAMA = ("rag-llamaindex", "opentelemetry.instrumentation.genai.llama_index", "1.3b0")
LLAMA = ("rag-llamaindex", "openinference.instrumentation.llama_index", "4.6.1")
HAYSTACK = ("rag-haystack", "openinference.instrumentation.haystack", "0.1.46")
SYNTHETIC = ("rag-synthetic", "example.rag", "1.0.0")
LC_INSTANCE = "991b9f53-aa03-44eb-bc5d-b5f840b309bd"
LI_INSTANCE = "a27d8c2b-6ed1-40f8-a4bb-c7a7a155a050"
NO_CONTENT = "adc1497a-368d-4338-8cc1-399e80933876"
SPAN_ONLY = "1880d1a6-9c80-4e22-ad48-e45c30e76575"
SYN_INSTANCE = "2b0c132a-7cc3-441b-9bb0-94f93159df00"


def metadata(chunk: str, *, with_document: bool, source: str, with_chunk: bool = False) -> Event:
    """The metadata that the samples' loaders gave a chunk."""
    document, url, page, language, updated, _ = CHUNKS[chunk]
    facts: Event = {"document_id": document} if with_document else {}
    if with_chunk:
        facts["chunk_id"] = chunk
    return facts | {source: url, "page": page, "lang": language, "updated_at": updated}


def candidate(
    chunk: str, rank: int, facts: Event | None, score: float | None = None, **more: Any
) -> Event:
    """A candidate whose text and metadata were told."""
    document, url, *_, text = CHUNKS[chunk]
    made: Event = {"chunk_id": chunk, "original_rank": rank}
    if facts is not None:
        made |= {"source_url": url, "excerpt": text, "metadata": json.dumps(facts)}
        if "document_id" in facts:
            made["document_id"] = document
    if score is not None:
        made["score"] = score
    return made | more


def langchain(chunk: str, rank: int, **more: Any) -> Event:
    """As LangChain's OpenInference tells it; what else is in the metadata is given as ``extra``."""
    extra = more.pop("extra", {})
    facts = metadata(chunk, with_document=True, source="source", with_chunk=True) | extra
    return candidate(chunk, rank, facts, **more)


def llama(chunk: str, rank: int, score: float, **more: Any) -> Event:
    """As LlamaIndex tells it: ids and scores, and no document."""
    facts = metadata(chunk, with_document=False, source="source_url")
    return candidate(chunk, rank, facts, score, **more)


def document(chunk: str, rank: int, score: float, **more: Any) -> Event:
    """As Haystack and Chroma tell it."""
    facts = metadata(chunk, with_document=True, source="source_url")
    return candidate(chunk, rank, facts, score, **more)


def only_id(chunk: str, rank: int, score: float | None = None) -> Event:
    """As OTel GenAI tells it: an id, perhaps a score."""
    return candidate(chunk, rank, None, score)


def lookup(
    trace: str,
    span: str,
    n: tuple[int, int],
    occurred_at: str,
    made_by: tuple[str, str, str],
    instance: str,
    degradations: Sequence[str],
    *,
    candidates: Sequence[Event] = (),
    known: bool = True,
    query: str | None = QUESTION,
    origin: Mapping[str, Any] | None = None,
    **more: Any,
) -> Event:
    """One expected event; ``known`` says that the documents were told, all of them."""
    service, scope, version = made_by
    kept = [c for c in candidates if c.get("kept", True)]
    event: Event = {
        "schema_version": "1.0",
        "event_id": str(uuid5(NAMESPACE, f"{trace}:{span}:lookup")),
        "occurred_at": occurred_at,
        "service": {"name": service, "version": "1.0.0", "instance_id": instance},
        "trace_id": trace,
        "span_id": span,
        "mode": "unknown",
        "model_version": "unknown",
        "candidates": list(candidates),
        "latency_ms": (n[1] - n[0]) / 1e6,
        "source_format": "otlp/openinference",
        "origin": {"scope": scope, "scope_version": version, **(origin or {})},
        "degradations": sorted(degradations),
    }
    if query is not None:
        event["query"] = {"text": query}
    if known:
        event["evidence_status"] = "EVIDENCE_FOUND" if kept else "NO_EVIDENCE"
        event["returned_count"] = len(kept)
    return event | more


LC_VECTOR: Event = {
    "mode": "dense",
    "model_version": "HashEmb",
    "origin": {
        "scope": LANGCHAIN[1],
        "scope_version": LANGCHAIN[2],
        "data_source": "InMemoryVectorStore",
    },
}
LI_VECTOR: Event = {"mode": "dense", "model_version": "hash-embedding-64"}
NO_LEVEL, GUESSED, NO_MODE = "level_unknown", "mode_inferred", "mode_unknown"
NO_MODEL, NO_QUERY, NO_SCORE = "model_version_unknown", "query_unknown", "score_unknown"
WHICH_SCORE, NO_TEXT, NO_LIST = "score_kind_unknown", "content_unknown", "candidates_unknown"


def langchain_lookup(
    trace: str,
    span: str,
    n: tuple[int, int],
    at: str,
    candidates: Sequence[Event],
    *degradations: str,
    **more: Any,
) -> Event:
    notes = degradations or (NO_LEVEL, GUESSED, NO_SCORE)
    made = lookup(trace, span, n, at, LANGCHAIN, LC_INSTANCE, notes, candidates=candidates)
    return made | LC_VECTOR | more


def llama_lookup(
    trace: str, span: str, n: tuple[int, int], at: str, candidates: Sequence[Event], **more: Any
) -> Event:
    notes = (NO_LEVEL, GUESSED, WHICH_SCORE) if candidates else (NO_LEVEL, GUESSED)
    query = more.pop("query", QUESTION)
    made = lookup(trace, span, n, at, LLAMA, LI_INSTANCE, notes, candidates=candidates, query=query)
    return made | LI_VECTOR | more


def genai_lookup(
    trace: str,
    span: str,
    n: tuple[int, int],
    at: str,
    made_by: tuple[str, str, str],
    instance: str,
    *degradations: str,
    **more: Any,
) -> Event:
    made = lookup(trace, span, n, at, made_by, instance, degradations, **more)
    return made | {"source_format": "otlp/genai"}


def sha(chunk: str) -> str:
    """The id of a chunk of which only the text was told."""
    return "sha256:" + hashlib.sha256(CHUNKS[chunk][5].encode()).hexdigest()


UNTOLD = (NO_LIST, NO_LEVEL, NO_MODEL, NO_QUERY)
FAILED = "TimeoutError: vector store timed out after 2.0 s"
LI_FIVE = (
    (VACATION, 0.3162277660168379),
    (GDPR, 0.05423261445466405),
    (SICK, 0.05063696835418334),
    (TRAVEL, 0.0),
    (ROOMS, -0.05063696835418334),
)
AFTER_FILTER = {"kept": False, "drop_reason": "filtered before"}
LEFT_OUT = {"kept": False, "drop_reason": "left out by the last stage"}


def filler(number: int, rank: int, score: float) -> Event:
    """A chunk of the bulk test, as LlamaIndex tells it."""
    return {
        "chunk_id": f"bulk-{number}",
        "original_rank": rank,
        "excerpt": f"Filler chunk number {number} about vacation days and policy {number}.",
        "score": score,
        "metadata": json.dumps({"n": number}),
    }


# Ranks 30 to 60 of 60; of rank 29 only the metadata is left, of 1 to 28 nothing.
K60 = (
    *((n, 0.22360679774997902) for n in (35, 37, 38, 9, 39, 41, 42, 43, 44, 22, 46, 5, 48, 50)),
    *((n, 0.22360679774997902) for n in (51, 52, 53, 54, 6, 56, 58, 59)),
    *((n, 0.19364916731037085) for n in (33, 12, 45, 55)),
    *((n, 2.7755575615628914e-17) for n in (10, 36, 14, 40, 47)),
)

EXPECTED: dict[str, list[Event]] = {
    "chroma_tl_query": [
        lookup(
            "19cb4cdfc5a4394d2a2b90fab81b4e2f",
            "2fcf643650fb7dfe",
            (1796071956311599353, 1796071956313861895),
            "2026-11-30T20:52:36.313861Z",
            ("rag-chroma", "opentelemetry.instrumentation.chromadb", "0.62.4"),
            "5867dc38-d2f3-4eeb-87eb-51b38817980b",
            (NO_LEVEL, GUESSED, NO_MODEL, NO_QUERY, WHICH_SCORE),
            query=None,
            candidates=[
                document(VACATION, 1, 0.6273220777511597, score_label="distance"),
                document(TRAVEL, 2, 0.918350338935852, score_label="distance")
                | {
                    "metadata": '{"document_id": "fin-guide-003", "source_url": '
                    '"https://wiki.example.com/finance/guide-003#travel", "page": 9, '
                    '"updated_at": "2026-01-15", "lang": "en"}'
                },
                document(GDPR, 3, 0.918350338935852, score_label="distance")
                | {
                    "metadata": '{"source_url": '
                    '"https://wiki.example.com/legal/gdpr-002#dsar", "page": 12, "lang": "en", '
                    '"document_id": "legal-gdpr-002", "updated_at": "2026-05-20"}'
                },
            ],
            origin={"data_source": "chroma"},
            mode="dense",
            top_k=3,
            source_format="otlp/vector-db",
        )
    ],
    "hs_oi_bm25": [
        lookup(
            "fcd09825bca89ce63343147f7b9f97dc",
            "118c7f24af7abe69",
            (1796071837228361412, 1796071837228967124),
            "2026-11-30T20:50:37.228967Z",
            HAYSTACK,
            "69f323d5-018b-41c9-9703-db808f8e24ec",
            (NO_LEVEL, GUESSED, NO_MODEL, WHICH_SCORE),
            candidates=[document(VACATION, 1, 16.821568554578114)],
            mode="lexical",
        )
    ],
    # The question and the model are those of the embedder beside it.
    "hs_oi_embedding": [
        lookup(
            "ffe5398607e1f9f9ab4b1bb73e3f99fa",
            "c4cecc89859775e7",
            (1796071837281227983, 1796071837288911116),
            "2026-11-30T20:50:37.288911Z",
            HAYSTACK,
            "69f323d5-018b-41c9-9703-db808f8e24ec",
            (NO_LEVEL, GUESSED, WHICH_SCORE),
            candidates=[
                document(VACATION, 1, 0.372677996249965),
                document(TRAVEL, 2, 0.08164965809277261),
                document(GDPR, 3, 0.08164965809277261),
            ],
            mode="dense",
            model_version="hash-embedding-64",
        )
    ],
    "lc_genai_retriever_error_no_content": [
        genai_lookup(
            "ef3af200b92568352a6ff9e92113a6e3",
            "4c88904460a0436e",
            (1796071894035608630, 1796071894035749072),
            "2026-11-30T20:51:34.035749Z",
            GENAI_LANGCHAIN,
            NO_CONTENT,
            *UNTOLD,
            NO_MODE,
            "retrieval_failed",
            known=False,
            query=None,
            origin={"failure": FAILED},
        )
    ],
    "lc_genai_retriever_error_span_only": [
        genai_lookup(
            "f064c43a19d780b118008d1c3e47368f",
            "2c0000bab2529f93",
            (1796071897326329914, 1796071897326450888),
            "2026-11-30T20:51:37.326450Z",
            GENAI_LANGCHAIN,
            SPAN_ONLY,
            *(NO_LIST, NO_LEVEL, NO_MODEL, NO_MODE, "retrieval_failed"),
            known=False,
            origin={"failure": FAILED},
        )
    ],
    "lc_genai_retriever_no_content": [
        genai_lookup(
            "fc62fd812514b0322ee1d15b5ffaa790",
            "d3b33fae08ef99c5",
            (1796071893964010050, 1796071893965565443),
            "2026-11-30T20:51:33.965565Z",
            GENAI_LANGCHAIN,
            NO_CONTENT,
            *UNTOLD,
            GUESSED,
            known=False,
            query=None,
            origin={"data_source": "InMemoryVectorStore"},
            mode="dense",
        )
    ],
    "lc_genai_retriever_scored_no_content": [
        genai_lookup(
            "f8650b9767a58c2804aa8cc1c5ec5f01",
            "00c459018bf62954",
            (1796071894021254494, 1796071894022089654),
            "2026-11-30T20:51:34.022089Z",
            GENAI_LANGCHAIN,
            NO_CONTENT,
            *UNTOLD,
            NO_MODE,
            known=False,
            query=None,
        )
    ],
    "lc_genai_retriever_scored_span_only": [
        genai_lookup(
            "a5b5893f5548f7031e4e1b936bf693bd",
            "408f5833ff472f7b",
            (1796071897322048100, 1796071897322768998),
            "2026-11-30T20:51:37.322768Z",
            GENAI_LANGCHAIN,
            SPAN_ONLY,
            *(NO_LEVEL, NO_MODE, NO_MODEL, NO_TEXT, WHICH_SCORE),
            candidates=[
                only_id(VACATION, 1, 0.372677996249965),
                only_id(GDPR, 2, 0.08164965809277261),
                only_id(TRAVEL, 3, 0.08164965809277261),
            ],
        )
    ],
    # Every score is null.
    "lc_genai_retriever_span_only": [
        genai_lookup(
            "b9a4c8b42b04c889e0a10fe3cfe0974f",
            "d8ef41af51fb55f9",
            (1796071897305802167, 1796071897306678424),
            "2026-11-30T20:51:37.306678Z",
            GENAI_LANGCHAIN,
            SPAN_ONLY,
            *(NO_LEVEL, GUESSED, NO_MODEL, NO_TEXT, NO_SCORE),
            candidates=[
                only_id(chunk, rank)
                for rank, chunk in enumerate((VACATION, GDPR, TRAVEL, ROOMS), 1)
            ],
            origin={"data_source": "InMemoryVectorStore"},
            mode="dense",
        )
    ],
    "lc_genai_retriever_tool_no_content": [
        genai_lookup(
            "9b991ee1f4b99af86f33d1a6e7353593",
            "de3d009699633444",
            (1796071894045965256, 1796071894046469678),
            "2026-11-30T20:51:34.046469Z",
            GENAI_LANGCHAIN,
            NO_CONTENT,
            *UNTOLD,
            GUESSED,
            known=False,
            query=None,
            origin={"data_source": "InMemoryVectorStore"},
            mode="dense",
            tool_call_id="call_62136355",
        )
    ],
    # All texts end at 64 characters, so even the JSON is broken: no ids, nor a hash of a half text.
    "lc_oi_attrlen_64": [
        lookup(
            "d7f76d6179caf677ad4491c1077f0364",
            "784bb496b6c8a52b",
            (1796071736038862848, 1796071736039447040),
            "2026-11-30T20:48:56.039447Z",
            LANGCHAIN,
            LC_INSTANCE,
            (
                *(NO_LEVEL, GUESSED, NO_MODEL, NO_SCORE),
                *("metadata_unparsable", "value_limit_suspected"),
            ),
            known=False,
            candidates=[
                {
                    "excerpt": CHUNKS[chunk][5][:64],
                    "metadata": json.dumps(
                        metadata(chunk, with_document=True, source="source", with_chunk=True)
                    )[:64],
                    "original_rank": rank,
                }
                for rank, chunk in enumerate((VACATION, GDPR, TRAVEL), 1)
            ],
            mode="dense",
            evidence_status="EVIDENCE_FOUND",
            truncated=True,
        )
    ],
    # No reranker span: the outer retriever kept two of the inner one's six and scored them.
    "lc_oi_compression_rerank": [
        langchain_lookup(
            "3aea126e7e5b24b378496655acb721b7",
            "8f71403b28a5dd46",
            (1796071735891341056, 1796071735892608768),
            "2026-11-30T20:48:55.892608Z",
            [
                langchain(VACATION, 1, kept=True, rerank_score=0.6666666666666666),
                langchain(GDPR, 2, kept=True, rerank_score=0.0),
                langchain(TRAVEL, 3, **LEFT_OUT),
                langchain(ROOMS, 4, **LEFT_OUT),
                langchain(SICK, 5, **LEFT_OUT),
                langchain(PASSWORDS, 6, **LEFT_OUT),
            ],
            retrieval_trace={
                "routes": [{"name": "VectorStoreRetriever", "hits": 6, "latency_ms": 0.564992}]
            },
            rerank_trace={
                "moves": [
                    {
                        "chunk_id": VACATION,
                        "rank_before": 1,
                        "rank_after": 1,
                        "score": 0.6666666666666666,
                    },
                    {"chunk_id": GDPR, "rank_before": 2, "rank_after": 2, "score": 0.0},
                    {"chunk_id": TRAVEL, "rank_before": 3},
                    {"chunk_id": ROOMS, "rank_before": 4},
                    {"chunk_id": SICK, "rank_before": 5},
                    {"chunk_id": PASSWORDS, "rank_before": 6},
                ]
            },
            selected_chunk_ids=[VACATION, GDPR],
            origin={
                "scope": LANGCHAIN[1],
                "scope_version": LANGCHAIN[2],
                "data_source": "contextualcompression",
            },
        )
    ],
    "lc_oi_dual_genai": [
        langchain_lookup(
            "f434f45ffdb5d50097a3c551ea7e3bae",
            "e25466e81857391b",
            (1796071736050780928, 1796071736051132928),
            "2026-11-30T20:48:56.051132Z",
            [langchain(VACATION, 1), langchain(GDPR, 2), langchain(TRAVEL, 3)],
        )
    ],
    "lc_oi_hide_inputs": [
        {
            name: value
            for name, value in langchain_lookup(
                "0269e41d9d00bdfc0fd7d49a2e65934f",
                "f83876d844570455",
                (1796071736042674944, 1796071736043056896),
                "2026-11-30T20:48:56.043056Z",
                [langchain(VACATION, 1), langchain(GDPR, 2)],
                *(NO_LEVEL, GUESSED, NO_SCORE, "query_redacted"),
            ).items()
            if name != "query"
        }
    ],
    "lc_oi_hide_outputs": [
        langchain_lookup(
            "3a028f401241ebff572a9e0caa929fa3",
            "d054e9d32954d0a5",
            (1796071736045416192, 1796071736045958912),
            "2026-11-30T20:48:56.045958Z",
            [{"original_rank": 1}, {"original_rank": 2}],
            *(NO_LEVEL, GUESSED, NO_SCORE, "candidates_redacted"),
        )
    ],
    # The output still shows what the attributes hide; it must not be read.
    "lc_oi_hide_retrieval_documents": [
        langchain_lookup(
            "75aa082e9a568f7a7832ec71d471a7fc",
            "9db1c9c902e7f41a",
            (1796071736048058112, 1796071736048413952),
            "2026-11-30T20:48:56.048413Z",
            [{"original_rank": 1}, {"original_rank": 2}],
            *(NO_LEVEL, GUESSED, NO_SCORE, "candidates_redacted"),
        )
    ],
    # The search ran outside any retriever: nothing can be seen of it.
    "lc_oi_not_visible": [],
    "lc_oi_rag_chain": [
        langchain_lookup(
            "f308ad3f26f7866e34c495a856523e89",
            "225b70853d53a340",
            (1796071735914493952, 1796071735915177984),
            "2026-11-30T20:48:55.915177Z",
            [langchain(VACATION, 1), langchain(GDPR, 2), langchain(TRAVEL, 3)],
            tenant="acme",
            run_id="sess-42",
        )
    ],
    "lc_oi_retriever": [
        langchain_lookup(
            "76ca6ecce7fec372dbe0ffc692999888",
            "03e2ced74d7227ab",
            (1796071735751826944, 1796071735753145856),
            "2026-11-30T20:48:55.753145Z",
            [
                langchain(chunk, rank)
                for rank, chunk in enumerate((VACATION, GDPR, TRAVEL, ROOMS), 1)
            ],
        )
    ],
    "lc_oi_retriever_async": [
        langchain_lookup(
            "a16ad3420a89e0847e1e117e50e60611",
            "db88642ba8d4221d",
            (1796071735809743872, 1796071735819379968),
            "2026-11-30T20:48:55.819379Z",
            [langchain(VACATION, 1), langchain(GDPR, 2)],
        ),
        langchain_lookup(
            "5bde2da943d236910794718c44e41793",
            "c21d01b5b87e71c0",
            (1796071735814062080, 1796071735820164864),
            "2026-11-30T20:48:55.820164Z",
            [langchain(GDPR, 1), langchain(TWO_FACTOR, 2)],
            query={"text": "password length"},
        ),
        langchain_lookup(
            "062877ee06b9833aa5744c22603cfe68",
            "f751c2d4c2ace187",
            (1796071735814433024, 1796071735820640000),
            "2026-11-30T20:48:55.820640Z",
            [langchain(TRAVEL, 1), langchain(PASSWORDS, 2)],
            query={"text": "travel expenses limit"},
        ),
    ],
    # An empty list was told: nothing was found.
    "lc_oi_retriever_empty": [
        langchain_lookup(
            "ff1ea34571266c700be1d8a3f05c0002",
            "7718dad202dc9670",
            (1796071735831361024, 1796071735831681024),
            "2026-11-30T20:48:55.831681Z",
            [],
            *(NO_LEVEL, GUESSED),
        )
    ],
    "lc_oi_retriever_scored": [
        lookup(
            "64c84a882951694e4b59914e151cbdd5",
            "feaf89a4f820228c",
            (1796071735863320064, 1796071735863972864),
            "2026-11-30T20:48:55.863972Z",
            LANGCHAIN,
            LC_INSTANCE,
            (NO_LEVEL, NO_MODE, NO_MODEL, WHICH_SCORE),
            candidates=[
                langchain(chunk, rank, score=score, extra={"score": score})
                for rank, (chunk, score) in enumerate(
                    (
                        (VACATION, 0.372677996249965),
                        (GDPR, 0.08164965809277261),
                        (TRAVEL, 0.08164965809277261),
                        (ROOMS, 0.0),
                    ),
                    1,
                )
            ],
            origin={"data_source": "scored"},
        )
    ],
    # The tool call's id is told only inside the tool's output.
    "lc_oi_retriever_tool": [
        langchain_lookup(
            "1fb997a20f21d66626ee89023f11be54",
            "7de35a1d823ab9b4",
            (1796071735976978176, 1796071735985799936),
            "2026-11-30T20:48:55.985799Z",
            [langchain(VACATION, 1), langchain(GDPR, 2)],
            tool_call_id="call_62136355",
        )
    ],
    # No ids at all: a chunk is known by its text.
    "lc_tl_retriever": [
        lookup(
            "11a7af44b5d4edae756d71c5226d66c9",
            "7f6def451791d544",
            (1796071950579436210, 1796071950583633693),
            "2026-11-30T20:52:30.583633Z",
            ("rag-langchain", "opentelemetry.instrumentation.langchain", "0.62.4"),
            "aaaf6f5b-5dd9-4485-9fb3-f2626ed83578",
            (NO_LEVEL, GUESSED, NO_SCORE),
            candidates=[
                candidate(chunk, rank, metadata(chunk, with_document=True, source="source"))
                | {"chunk_id": sha(chunk)}
                for rank, chunk in enumerate((VACATION, GDPR, TRAVEL, ROOMS), 1)
            ],
            origin={"data_source": "InMemoryVectorStore"},
            mode="dense",
            model_version="HashEmb",
            source_format="otlp/openllmetry",
        )
    ],
    "li_genai_fusion_no_content": [
        genai_lookup(
            "ac8c47846d1ecdef3cd7ef9f30e04504",
            "d1f0e7f7e181135d",
            (1796071895710058570, 1796071895711669845),
            "2026-11-30T20:51:35.711669Z",
            GENAI_LLAMA,
            NO_CONTENT,
            *UNTOLD,
            NO_MODE,
            known=False,
            query=None,
            top_k=3,
        )
    ],
    "li_genai_query_engine_no_content": [
        genai_lookup(
            "f4efb6b099d863f7c99b3ba30a0b0742",
            "d7bab9dd7b69e961",
            (1796071895702500707, 1796071895703364003),
            "2026-11-30T20:51:35.703364Z",
            GENAI_LLAMA,
            NO_CONTENT,
            *UNTOLD,
            NO_MODE,
            known=False,
            query=None,
            top_k=3,
        )
    ],
    "li_genai_query_engine_span_only": [
        genai_lookup(
            "48ad645b6c2100b1167c22ccc515141e",
            "472b0d6ec9e68d27",
            (1796071898412180971, 1796071898413096870),
            "2026-11-30T20:51:38.413096Z",
            GENAI_LLAMA,
            SPAN_ONLY,
            *(NO_LEVEL, NO_MODE, NO_MODEL, NO_TEXT, WHICH_SCORE),
            candidates=[only_id(c, rank, s) for rank, (c, s) in enumerate(LI_FIVE[:3], 1)],
            top_k=3,
        )
    ],
    "li_genai_retriever_no_content": [
        genai_lookup(
            "ad7b1d49d0653c60da9b5914841c77ea",
            "df2dd7fc45672ce3",
            (1796071895696061462, 1796071895697910666),
            "2026-11-30T20:51:35.697910Z",
            GENAI_LLAMA,
            NO_CONTENT,
            *UNTOLD,
            NO_MODE,
            known=False,
            query=None,
            top_k=4,
        )
    ],
    "li_genai_retriever_span_only": [
        genai_lookup(
            "80b217429aa9c4dfc92301e182ca46b7",
            "10ede577f07d15ba",
            (1796071898406325026, 1796071898408151094),
            "2026-11-30T20:51:38.408151Z",
            GENAI_LLAMA,
            SPAN_ONLY,
            *(NO_LEVEL, NO_MODE, NO_MODEL, NO_TEXT, WHICH_SCORE),
            candidates=[only_id(c, rank, s) for rank, (c, s) in enumerate(LI_FIVE[:4], 1)],
            top_k=4,
        )
    ],
    "li_oi_hide_vectors": [
        llama_lookup(
            "332d03ece5e68317cc8ed4ed1595e734",
            "44813c818ea24d34",
            (1796071804803080065, 1796071804805086835),
            "2026-11-30T20:50:04.805086Z",
            [llama(c, rank, s) for rank, (c, s) in enumerate(LI_FIVE[:2], 1)],
        )
    ],
    "li_oi_k60_default_limits": [
        lookup(
            "a74dcac4e4b52fd50f057f7b87be1cec",
            "7671e7327e0ccce7",
            (1796071806026089569, 1796071806036143970),
            "2026-11-30T20:50:06.036143Z",
            LLAMA,
            LI_INSTANCE,
            (
                *(NO_LEVEL, GUESSED, NO_TEXT, NO_SCORE, WHICH_SCORE),
                *("attributes_dropped", "documents_missing"),
            ),
            known=False,
            candidates=[
                {"metadata": '{"n": 8}', "original_rank": 29},
                *(filler(n, rank, score) for rank, (n, score) in enumerate(K60, 30)),
            ],
            origin={"dropped_attributes": 116, "missing_documents": 28},
            evidence_status="EVIDENCE_FOUND",
            truncated=True,
            **LI_VECTOR,
        )
    ],
    # One lookup of sixteen spans: retriever, its inner twin, a filter that took two, a reranker.
    "li_oi_query_engine_rerank": [
        llama_lookup(
            "f2bc41f5b2f5e4a4d8a48ccddea92b53",
            "0150f4ebd9e92a1f",
            (1796071805588268698, 1796071805598184794),
            "2026-11-30T20:50:05.598184Z",
            [
                llama(VACATION, 1, LI_FIVE[0][1], kept=True, rerank_score=0.6666666666666666),
                llama(GDPR, 2, LI_FIVE[1][1], kept=True, rerank_score=0.0),
                llama(SICK, 3, LI_FIVE[2][1], kept=True, rerank_score=0.0),
                llama(TRAVEL, 4, LI_FIVE[3][1], **AFTER_FILTER),
                llama(ROOMS, 5, LI_FIVE[4][1], **AFTER_FILTER),
            ],
            tenant="acme",
            run_id="sess-42",
            versions={"reranker": "rerank-v3.5"},
            rerank_trace={
                "model": "rerank-v3.5",
                "latency_ms": 1.30266,
                "moves": [
                    {
                        "chunk_id": VACATION,
                        "rank_before": 1,
                        "rank_after": 1,
                        "score": 0.6666666666666666,
                    },
                    {"chunk_id": GDPR, "rank_before": 2, "rank_after": 2, "score": 0.0},
                    {"chunk_id": SICK, "rank_before": 3, "rank_after": 3, "score": 0.0},
                ],
            },
            selected_chunk_ids=[VACATION, GDPR, SICK],
        )
    ],
    # Two traces, so nothing joins them: a lookup, and a reranker whose retriever is not seen.
    "li_oi_reranker": [
        llama_lookup(
            "6ba918eef435274096003d13d4a30998",
            "a155b0b2618b2aab",
            (1796071805472137053, 1796071805476413875),
            "2026-11-30T20:50:05.476413Z",
            [llama(c, rank, s) for rank, (c, s) in enumerate(LI_FIVE, 1)],
        ),
        lookup(
            "0118a2d8008614c0f796d65a69434cce",
            "9eec4f509f2f2a46",
            (1796071805476529239, 1796071805478044106),
            "2026-11-30T20:50:05.478044Z",
            LLAMA,
            LI_INSTANCE,
            (NO_LEVEL, NO_MODE, NO_MODEL, WHICH_SCORE, "retriever_not_seen"),
            candidates=[
                llama(VACATION, 1, LI_FIVE[0][1], kept=True, rerank_score=0.6666666666666666),
                llama(GDPR, 2, LI_FIVE[1][1], kept=True, rerank_score=0.0),
                llama(SICK, 3, LI_FIVE[2][1], **LEFT_OUT),
                llama(TRAVEL, 4, LI_FIVE[3][1], **LEFT_OUT),
                llama(ROOMS, 5, LI_FIVE[4][1], **LEFT_OUT),
            ],
            top_k=2,
            versions={"reranker": "rerank-v3.5"},
            rerank_trace={
                "model": "rerank-v3.5",
                "latency_ms": 1.514867,
                "moves": [
                    {
                        "chunk_id": VACATION,
                        "rank_before": 1,
                        "rank_after": 1,
                        "score": 0.6666666666666666,
                    },
                    {"chunk_id": GDPR, "rank_before": 2, "rank_after": 2, "score": 0.0},
                    {"chunk_id": SICK, "rank_before": 3},
                    {"chunk_id": TRAVEL, "rank_before": 4},
                    {"chunk_id": ROOMS, "rank_before": 5},
                ],
            },
            selected_chunk_ids=[VACATION, GDPR],
        ),
    ],
    "li_oi_retriever": [
        llama_lookup(
            "4019d9656beccc61ad64440f5dfa0f62",
            "a4f2932fd14449b2",
            (1796071804688165277, 1796071804696635882),
            "2026-11-30T20:50:04.696635Z",
            [llama(c, rank, s) for rank, (c, s) in enumerate(LI_FIVE[:4], 1)],
        )
    ],
    "li_oi_retriever_async": [
        llama_lookup(
            "f1c5ad5e547c0809c5efcc75edbb3bc9",
            "3fa0d87071c0e658",
            (1796071804736999872, 1796071804743024545),
            "2026-11-30T20:50:04.743024Z",
            [llama(c, rank, s) for rank, (c, s) in enumerate(LI_FIVE[:2], 1)],
        ),
        llama_lookup(
            "5abc6b87cc3a7544556425cd70d0f695",
            "00c9f25663371c48",
            (1796071804743135924, 1796071804745043565),
            "2026-11-30T20:50:04.745043Z",
            [llama(TWO_FACTOR, 1, 0.13130643285972257), llama(OTPUSK, 2, 0.12909944487358058)],
            query="password length",
        ),
        llama_lookup(
            "f00de9505affdb4316267a48f308f764",
            "52959b15ae646568",
            (1796071804745119366, 1796071804757495508),
            "2026-11-30T20:50:04.757495Z",
            [llama(TRAVEL, 1, 0.37463432463267765), llama(PASSWORDS, 2, 0.20100756305184245)],
            query="travel expenses limit",
        ),
    ],
    # No document attributes, but the output is an empty list.
    "li_oi_retriever_empty": [
        llama_lookup(
            "5b848bece61820c84fc8911e3d580eda",
            "e392beaf9ed5cbc2",
            (1796071804794747349, 1796071804796427978),
            "2026-11-30T20:50:04.796427Z",
            [],
        )
    ],
    "li_tl_retriever": [
        lookup(
            "2558c07c36bb65b4f6e795f6afea0dc2",
            "10d8d6b258533a18",
            (1796071955449447124, 1796071955452935535),
            "2026-11-30T20:52:35.452935Z",
            ("rag-llamaindex", "opentelemetry.instrumentation.llamaindex", "0.62.4"),
            "5867dc38-d2f3-4eeb-87eb-51b38817980b",
            (NO_LEVEL, GUESSED, WHICH_SCORE),
            candidates=[llama(c, rank, s) for rank, (c, s) in enumerate(LI_FIVE[:3], 1)],
            source_format="otlp/openllmetry",
            **LI_VECTOR,
        )
    ],
    # top_k is 3.0 under its old name.
    "syn_genai_semconv_1_41": [
        genai_lookup(
            "c4060219a94eb08f36d6e8423d179430",
            "56c0987b4b01ad44",
            (1796072719873576880, 1796072719873673116),
            "2026-11-30T21:05:19.873673Z",
            SYNTHETIC,
            SYN_INSTANCE,
            *(NO_LEVEL, NO_MODE, NO_MODEL, NO_TEXT, WHICH_SCORE),
            candidates=[only_id(VACATION, 1, 0.9), only_id(SICK, 2, 0.8), only_id(OTPUSK, 3, 0.7)],
            origin={"data_source": "handbook"},
            top_k=3,
        )
    ],
    # Only what the reranker left is told, so the ranks before it are unknown.
    "syn_oi_documents_as_json_string": [
        lookup(
            "393b92bdb3b0c0092cc5bdf6453f02bc",
            "273291f912ac7306",
            (1796072719878191002, 1796072719878204453),
            "2026-11-30T21:05:19.878204Z",
            SYNTHETIC,
            SYN_INSTANCE,
            (NO_LEVEL, NO_MODE, NO_MODEL, "retriever_not_seen"),
            candidates=[
                {
                    "chunk_id": chunk,
                    "excerpt": CHUNKS[chunk][5],
                    "score": score,
                    "score_label": "rerank",
                    "rerank_score": score,
                    "kept": True,
                }
                for chunk, score in ((VACATION, 0.9), (SICK, 0.8))
            ],
            schema_version="1.1",
            top_k=2,
            versions={"reranker": "bge-reranker-v2-m3"},
            rerank_trace={
                "model": "bge-reranker-v2-m3",
                "latency_ms": 0.013451,
                "moves": [
                    {"chunk_id": VACATION, "rank_after": 1, "score": 0.9},
                    {"chunk_id": SICK, "rank_after": 2, "score": 0.8},
                ],
            },
            selected_chunk_ids=[VACATION, SICK],
        )
    ],
    "syn_oi_nan_inf_scores": [
        lookup(
            "ad1c690a2e0bdabfd166684a4f779470",
            "3d615d5c0ca0f075",
            (1796072719881975413, 1796072719881983893),
            "2026-11-30T21:05:19.881983Z",
            SYNTHETIC,
            SYN_INSTANCE,
            (NO_LEVEL, NO_MODE, NO_MODEL, NO_TEXT, WHICH_SCORE, "score_not_finite"),
            query="q",
            candidates=[
                {"chunk_id": "a", "original_rank": 1},
                {"chunk_id": "b", "original_rank": 2},
                {"chunk_id": "c", "original_rank": 3, "score": -1.5},
            ],
        )
    ],
    # Attributes of another product's namespace beside OTel GenAI: they are not ours to read.
    "syn_own_namespace": [
        genai_lookup(
            "1be9246b2c7d97ea2d31eadc5ee11c1e",
            "2edff0e11b7ec8d9",
            (1796072719886158698, 1796072719886180053),
            "2026-11-30T21:05:19.886180Z",
            SYNTHETIC,
            SYN_INSTANCE,
            *(NO_LEVEL, NO_MODE, NO_MODEL, WHICH_SCORE),
            candidates=[
                document(VACATION, 1, 0.9),
                document(SICK, 2, 0.8),
                document(OTPUSK, 3, 0.7),
            ],
            origin={"data_source": "handbook"},
            top_k=3,
        )
    ],
}
