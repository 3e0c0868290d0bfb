from __future__ import annotations

import pytest

from lookup_audit.deploy.demo.wordpiece import WordPiece, basic_words


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece.shipped()


# The ids were computed with the reference tokenizer of the model.
def test_ids_are_those_of_the_reference_tokenizer(tokenizer: WordPiece) -> None:
    expected = [7668, 1005, 1055, 1052, 2683, 2683, 4895, 6299, 10128, 19210]
    assert tokenizer.ids("Café's p99 unverifiable") == expected


def test_words_that_cannot_be_pieced_together_are_unknown(tokenizer: WordPiece) -> None:
    assert tokenizer.ids("\u1680 \U0001f9ff") == [100]
    assert tokenizer.ids("a" * 101) == [100]


def test_text_without_words_has_no_tokens(tokenizer: WordPiece) -> None:
    assert tokenizer.count(" \t\n\x00\u200b") == 0


def test_ideographs_and_signs_stand_alone() -> None:
    assert list(basic_words("漢字a+b£")) == ["漢", "字", "a", "+", "b£"]
