"""The WordPiece tokenizer of the demo's embedding model, on the vocabulary that ships beside it.

Own code because the usual tokenizer package brings a model-hub client with it, and nothing in
the demo may reach for the network. ``wordpiece_vocab.txt`` is the vocabulary of BERT base
uncased (Google, Apache-2.0).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from importlib.resources import files

VOCABULARY_FILE = "wordpiece_vocab.txt"
MAX_WORD_CHARACTERS = 100


class WordPiece:
    """Lower-casing BERT tokenizer: text to vocabulary ids, without the special tokens."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._unknown = vocabulary["[UNK]"]
        self.start_id = vocabulary["[CLS]"]
        self.end_id = vocabulary["[SEP]"]

    @classmethod
    def shipped(cls) -> WordPiece:
        """The tokenizer over the vocabulary in this package."""
        text = files(__package__).joinpath(VOCABULARY_FILE).read_text(encoding="utf-8")
        return cls({token: number for number, token in enumerate(text.split("\n")[:-1])})

    def ids(self, text: str) -> list[int]:
        """The vocabulary ids of a text."""
        return [number for word in basic_words(text) for number in self._pieces(word)]

    def count(self, text: str) -> int:
        """The number of tokens of a text, as the context budget counts them."""
        return len(self.ids(text))

    def _pieces(self, word: str) -> list[int]:
        if len(word) > MAX_WORD_CHARACTERS:
            return [self._unknown]
        pieces: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else f"##{word[start:end]}"
                number = self._vocabulary.get(piece)
                if number is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return [self._unknown]
        return pieces


def basic_words(text: str) -> Iterable[str]:
    """Words and single punctuation marks, lower-cased and without accents.

    >>> list(basic_words("Café's p99: 3.5 s"))
    ['cafe', "'", 's', 'p99', ':', '3', '.', '5', 's']
    """
    word: list[str] = []
    for character in unicodedata.normalize("NFD", text.lower()):
        category = unicodedata.category(character)
        if category == "Mn" or (category.startswith("C") and not character.isspace()):
            continue
        alone = _is_punctuation(character, category) or _is_ideograph(character)
        if word and (alone or character.isspace()):
            yield "".join(word)
            word = []
        if alone:
            yield character
        elif not character.isspace():
            word.append(character)
    if word:
        yield "".join(word)


def _is_punctuation(character: str, category: str) -> bool:
    # BERT calls every non-alphanumeric ASCII sign punctuation, also $, +, <, ^ and `.
    return category.startswith("P") or ("!" <= character <= "~" and not character.isalnum())


def _is_ideograph(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff" or "\u3400" <= character <= "\u4dbf"
