from __future__ import annotations

from datetime import date

import pytest

from lookup_audit.deploy.demo.corpus import (
    CorpusError,
    Page,
    flatten,
    handbook_files,
    load_pages,
    parse_page,
    section_chunks,
    window_chunks,
)

PAGE = """---
title: Ports
category: operations
version: "1.0"
updated: 2026-10-13
url: https://lookup-audit.example/handbook/ports
---

The collector has one
port.

## Default

- It is 4318.
- Change it with `--port`.
"""


def count_words(text: str) -> int:
    return len(text.split())


def test_every_page_of_the_handbook_has_its_front_matter(pages: list[Page]) -> None:
    assert len(pages) == len(handbook_files()) >= 25
    for page in pages:
        assert date.fromisoformat(page.updated).year == 2026
        prefix = "https://lookup-audit.example/handbook/"
        assert page.url is None or page.url.startswith(prefix)
        assert page.url is None or page.url.endswith(f"/{page.slug}")


def test_some_pages_have_no_link_and_some_exist_in_two_versions(pages: list[Page]) -> None:
    versions: dict[str, set[str]] = {}
    for page in pages:
        versions.setdefault(page.slug, set()).add(page.version)
    assert sum(page.url is None for page in pages) >= 2
    assert sum(found == {"0.9", "1.0"} for found in versions.values()) >= 3


def test_pages_have_a_readable_length(pages: list[Page]) -> None:
    for entry in handbook_files():
        words = len(entry.read_text(encoding="utf-8").partition("\n---\n")[2].split())
        assert 250 <= words <= 700, f"{entry.name} has {words} words"


def test_links_of_pages_are_unique(pages: list[Page]) -> None:
    urls = [page.url for page in pages if page.url]
    assert len(urls) == len(set(urls))


def test_hard_wraps_are_undone_and_list_items_stand_alone() -> None:
    page = parse_page("ports.md", PAGE)
    assert [s.heading for s in page.sections] == ["Ports", "Default"]
    assert page.sections[0].blocks == ("The collector has one port.",)
    assert page.sections[1].blocks == ("It is 4318.", "Change it with `--port`.")


def test_a_file_name_gives_slug_and_other_version() -> None:
    page = parse_page("ports@0.9.md", PAGE.replace('"1.0"', '"0.9"'))
    assert (page.slug, page.version) == ("ports", "0.9")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param("no front matter", "starts without a front matter", id="none"),
        pytest.param("---\ntitle: x\n---\ntext", "lacks category, version, updated", id="gaps"),
    ],
)
def test_a_page_without_front_matter_is_refused(source: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        parse_page("bad.md", source)


def test_a_page_and_version_cannot_exist_twice() -> None:
    twice = [handbook_files()[0]] * 2
    with pytest.raises(CorpusError, match="exists twice"):
        load_pages(twice)


@pytest.mark.parametrize("cut", [section_chunks, window_chunks], ids=["sections", "windows"])
def test_chunks_are_verbatim_pieces_of_their_page_with_ids_of_their_own(
    cut: object, pages: list[Page]
) -> None:
    assert callable(cut)
    chunks = cut(pages, count_words)
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    for chunk in chunks:
        assert flatten(chunk.text) in flatten(chunk.page.text)


@pytest.mark.parametrize("cut", [section_chunks, window_chunks], ids=["sections", "windows"])
def test_no_word_of_a_page_is_lost_by_a_chunker(cut: object, pages: list[Page]) -> None:
    assert callable(cut)
    chunks = cut(pages, count_words)
    for page in pages:
        joined = " ".join(chunk.text for chunk in chunks if chunk.page == page)
        assert flatten(joined) == flatten(page.text)


def test_section_chunks_carry_their_heading_and_link_to_it() -> None:
    chunk = section_chunks([parse_page("ports.md", PAGE)], count_words)[1]
    assert chunk.indexed_text.startswith("Ports. Default. ")
    assert chunk.source_url == "https://lookup-audit.example/handbook/ports#default"
    assert chunk.breadcrumb == "Handbook > Operations > Ports > Default"


def test_long_sections_are_cut_between_blocks() -> None:
    chunks = section_chunks([parse_page("ports.md", PAGE)], count_words, max_tokens=4)
    assert [c.text for c in chunks][1:] == ["It is 4318.", "Change it with `--port`."]
