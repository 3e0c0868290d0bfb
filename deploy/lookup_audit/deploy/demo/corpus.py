"""The demo's corpus: the handbook's pages, and the two ways they are cut into chunks.

Pages are Markdown with a small front matter. Both chunkers keep every chunk a verbatim piece of
the page's normalised text, so that an excerpt can be looked up where it came from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable

TokenCounter = Callable[[str], int]

REQUIRED_FRONT_MATTER = ("title", "category", "version", "updated")


class CorpusError(ValueError):
    """A page that cannot be used as written; the message names the page and the fix."""


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of a page with the blocks (paragraphs, list items, code) under it."""

    heading: str
    blocks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The section's blocks, one a line."""
        return "\n".join(self.blocks)

    @property
    def anchor(self) -> str:
        """The heading as the fragment of a link."""
        return re.sub(r"[^a-z0-9]+", "-", self.heading.lower()).strip("-")


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the handbook in one version."""

    slug: str
    title: str
    category: str
    version: str
    updated: str
    url: str | None
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """All of the page's prose, headings left out."""
        return "\n".join(section.text for section in self.sections)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One retrievable piece of a page.

    ``text`` is what may be quoted; ``indexed_text`` is what the retrieval model reads, which may
    carry the title and heading as context.
    """

    chunk_id: str
    page: Page
    heading: str
    text: str
    indexed_text: str
    source_url: str | None
    tokens: int
    breadcrumb: str = field(default="")

    @property
    def citation_key(self) -> tuple[str, str, str | None]:
        """What makes two chunks the same citation: document, version and link."""
        return (self.page.slug, self.page.version, self.source_url)


def handbook_files() -> list[Traversable]:
    """The Markdown pages shipped with the product, in a stable order."""
    folder = files("lookup_audit.deploy").joinpath("handbook")
    return sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".md")),
        key=lambda entry: entry.name,
    )


def load_pages(entries: Iterable[Traversable] | None = None) -> list[Page]:
    """Read the handbook, or the given files.

    Raises:
        CorpusError: A page has no front matter, lacks a field, or repeats a slug and version.
    """
    pages: list[Page] = []
    seen: set[tuple[str, str]] = set()
    for entry in handbook_files() if entries is None else entries:
        page = parse_page(entry.name, entry.read_text(encoding="utf-8"))
        if (page.slug, page.version) in seen:
            raise CorpusError(f"{entry.name}: version {page.version} of {page.slug} exists twice")
        seen.add((page.slug, page.version))
        pages.append(page)
    return pages


def parse_page(name: str, source: str) -> Page:
    """Turn one Markdown file into a page.

    A file named ``ports@0.9.md`` is another version of the page ``ports``.

    Raises:
        CorpusError: The front matter is missing or incomplete.
    """
    match = re.match(r"---\n(.*?)\n---\n(.*)", source, flags=re.DOTALL)
    if match is None:
        raise CorpusError(f"{name}: starts without a front matter between two --- lines")
    meta: dict[str, str] = {}
    for line in match.group(1).splitlines():
        key, _, value = line.partition(":")
        meta[key.strip()] = value.strip().strip('"')
    missing = [key for key in REQUIRED_FRONT_MATTER if not meta.get(key)]
    if missing:
        raise CorpusError(f"{name}: the front matter lacks {', '.join(missing)}")
    return Page(
        slug=name.removesuffix(".md").partition("@")[0],
        title=meta["title"],
        category=meta["category"],
        version=meta["version"],
        updated=meta["updated"],
        url=meta.get("url") or None,
        sections=tuple(_sections(meta["title"], match.group(2))),
    )


def _sections(title: str, body: str) -> Iterable[Section]:
    heading = title
    blocks: list[str] = []
    for block in _blocks(body):
        found = re.match(r"#+ (.+)", block)
        if found is None:
            blocks.append(block)
            continue
        if blocks:
            yield Section(heading, tuple(blocks))
        heading, blocks = found.group(1), []
    if blocks:
        yield Section(heading, tuple(blocks))


def _blocks(body: str) -> Iterable[str]:
    """Paragraphs with their hard wraps undone; list items, table rows and code lines apart."""
    pending: list[str] = []
    in_code = False
    for line in [*body.splitlines(), ""]:
        fence = line.lstrip().startswith("```")
        starts_block = bool(re.match(r"\s*(#|[-*|] ?|\d+\. )", line)) or fence or in_code
        if pending and (starts_block or not line.strip()):
            yield " ".join(pending)
            pending = []
        if fence:
            in_code = not in_code
        elif in_code or line.startswith("|"):
            if line.strip() and not re.fullmatch(r"[|\s:-]+", line):
                yield " ".join(line.split())
        elif line.startswith("#"):
            yield line.strip()
        elif line.strip():
            pending.append(re.sub(r"^\s*([-*]|\d+\.) ", "", " ".join(line.split())))


def section_chunks(
    pages: Iterable[Page], count_tokens: TokenCounter, *, max_tokens: int = 180
) -> list[Chunk]:
    """Cut at headings, and long sections between blocks; each chunk knows its title and heading."""
    chunks: list[Chunk] = []
    for page in pages:
        number = 0
        for section in page.sections:
            for text in _pack(section.blocks, count_tokens, max_tokens):
                indexed = f"{page.title}. {section.heading}. {text}"
                chunks.append(_chunk(page, number, section, text, indexed, count_tokens))
                number += 1
    return chunks


def window_chunks(
    pages: Iterable[Page], count_tokens: TokenCounter, *, words: int = 60
) -> list[Chunk]:
    """Cut every so many words, through sentences and headings alike, without any context.

    The cheap chunker that many first deployments have: it splits facts from what they are about.
    """
    chunks: list[Chunk] = []
    for page in pages:
        owners = [(word, section) for section in page.sections for word in section.text.split()]
        for number, start in enumerate(range(0, len(owners), words)):
            window = owners[start : start + words]
            text = " ".join(word for word, _ in window)
            chunks.append(_chunk(page, number, window[0][1], text, text, count_tokens))
    return chunks


def _pack(blocks: Sequence[str], count_tokens: TokenCounter, max_tokens: int) -> Iterable[str]:
    held: list[str] = []
    used = 0
    for block in blocks:
        size = count_tokens(block)
        if held and used + size > max_tokens:
            yield "\n".join(held)
            held, used = [], 0
        held.append(block)
        used += size
    if held:
        yield "\n".join(held)


def _chunk(
    page: Page,
    number: int,
    section: Section,
    text: str,
    indexed_text: str,
    count_tokens: TokenCounter,
) -> Chunk:
    trail = ["Handbook", page.category.capitalize(), page.title]
    if section.heading != page.title:
        trail.append(section.heading)
    return Chunk(
        chunk_id=f"{page.slug}@{page.version}#{number}",
        page=page,
        heading=section.heading,
        text=text,
        indexed_text=indexed_text,
        source_url=f"{page.url}#{section.anchor}" if page.url else None,
        tokens=count_tokens(text),
        breadcrumb=" > ".join(trail),
    )


def flatten(text: str) -> str:
    """Text with every run of white space made one space: how phrases are compared."""
    return " ".join(text.split())
