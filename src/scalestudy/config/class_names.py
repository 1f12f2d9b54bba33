"""Names of a metric's values for each class."""

import re
from collections.abc import Sequence


def class_suffixes(class_names: Sequence[str]) -> list[str]:
    """A word for each class for use in column names; repeated words get the class index."""
    words = [re.sub(r"\W+", "_", name).strip("_") for name in class_names]
    unique = (word and words.count(word) == 1 for word in words)
    return [
        word if is_unique else f"{word}_{index}".lstrip("_")
        for index, (word, is_unique) in enumerate(zip(words, unique, strict=True))
    ]


def class_keys(metric: str, class_names: Sequence[str]) -> list[str]:
    """Names of the metric's values for each class, in results."""
    return [f"{metric}_{word}" for word in class_suffixes(class_names)]
