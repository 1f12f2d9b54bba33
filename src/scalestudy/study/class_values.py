"""Names of the values that a metric has for each class: `iou_background`."""

import re
from collections.abc import Sequence


def class_words(class_names: Sequence[str]) -> list[str]:
    """A word for each class that can be part of a column's name; of equal ones, with the index."""
    words = [re.sub(r"\W+", "_", name).strip("_") for name in class_names]
    unique = (word and words.count(word) == 1 for word in words)
    return [
        word if own else f"{word}_{index}".lstrip("_")
        for index, (word, own) in enumerate(zip(words, unique, strict=True))
    ]


def class_keys(metric: str, class_names: Sequence[str]) -> list[str]:
    """Name of the metric's value of each class, in results."""
    return [f"{metric}_{word}" for word in class_words(class_names)]
