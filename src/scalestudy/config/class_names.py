"""Names of a metric's values for each class."""

import re
from collections.abc import Sequence


def class_suffixes(class_names: Sequence[str]) -> list[str]:
    """A word for each class for use in column names; repeated words get the class index."""
    words = []
    for name in class_names:
        word = re.sub(r"\W+", "_", name)
        words.append(word.strip("_"))
    suffixes = []
    for index, word in enumerate(words):
        # Different names may give one word, or none: `n/a` and `n a`, or `+` and `-`.
        if not word or words.count(word) > 1:
            word_and_index = f"{word}_{index}"
            suffixes.append(word_and_index.lstrip("_"))
        else:
            suffixes.append(word)
    return suffixes


def class_keys(metric: str, class_names: Sequence[str]) -> list[str]:
    """Names of the metric's values for each class, in results."""
    return [f"{metric}_{word}" for word in class_suffixes(class_names)]
