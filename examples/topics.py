"""Text classification: the field of mathematics of a function, from its documentation.

The texts are the docstrings of SciPy, which is installed with this package; they need no network access.
Sequences of different lengths are stored as they are, and padded to the longest of each global batch.
"""

import ast
import re
import zlib
from pathlib import Path
from typing import Any

import keras
from keras import layers

train = {"epochs": 15, "batch_size": 32, "learning_rate": 0.01}
sequences = ["inputs"]

FIELDS = ("linalg", "optimize", "signal", "sparse", "spatial", "stats")
WORDS = 4096
LONGEST = 200


def read(data: Any) -> Any:
    """Yield (numbers of words, field, file) for each docstring; all docstrings of a file are in one split."""
    root = _scipy()
    for field in FIELDS:
        for file in sorted((root / field).glob("*.py")):
            for text in _docstrings(file):
                words = re.findall(r"[a-z]{3,}", text.lower().replace(field, ""))[
                    :LONGEST
                ]
                if len(words) >= 10:
                    # The number of a word is a hash, so that new texts need no vocabulary; 0 is padding.
                    yield (
                        [1 + zlib.crc32(word.encode()) % WORDS for word in words],
                        field,
                        f"{field}/{file.name}",
                    )


def _scipy() -> Path:
    import scipy  # noqa: PLC0415 (only to read)

    return Path(scipy.__file__).parent


def _docstrings(file: Path) -> list[str]:
    defined = (ast.FunctionDef, ast.ClassDef)
    found = (
        ast.get_docstring(each)
        for each in ast.walk(ast.parse(file.read_text()))
        if isinstance(each, defined)
    )
    return [text for text in found if text]


def model(data: Any) -> keras.Model:
    """Build the mean of the words' embeddings, with padding masked, and a softmax over the fields."""
    words = keras.Input(data.inputs.shape, dtype="int32")
    x = layers.Embedding(1 + WORDS, 32, mask_zero=True)(words)
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling1D()(x))
    return keras.Model(words, layers.Dense(data.classes, activation="softmax")(x))


loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
