"""A few of scikit-learn's digits: with a small validation set, runs spend their time in training."""

from pathlib import Path

import numpy as np


def few_digits(folder: Path, count: int) -> str:
    """Write the first `count` as an .npz file of 8-bit images; return its path, which is a source."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    file = folder / f"digits-{count}.npz"
    np.savez(
        file,
        x_train=(digits.images[:count] * 15).astype(np.uint8),
        y_train=digits.target[:count],
    )
    return str(file)
