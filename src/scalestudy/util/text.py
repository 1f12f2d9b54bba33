"""Word numbers and lists in sentences, in one way for messages, reports and pages.

    plural("GPU", 2)                            "GPUs"
    count_noun(1013, "sample")                  "1,013 samples"
    join_words(["a", "b", "c"])                 "a, b and c"
    join_words(["a", "b", "c"], "or")           "a, b or c"
    join_first(["a", "b", "c", "d"], most=2)    "a, b and 2 more"
    elide(["a", "b", "c", "d"], most=2)         "a, b, …"

What is joined without any of this stays `", ".join(names)`.
"""

from collections.abc import Sequence


def plural(noun: str, count: float, form: str = "") -> str:
    """Return a noun in the number of `count`, without the count: `worker` for 1, else `workers`.

    Args:
        noun: The singular.
        count: How many there are; none takes the plural, as in English.
        form: The plural, where it is not the singular and an `s`: `entries`.
    """
    if count == 1:
        return noun
    return form or f"{noun}s"


def count_noun(count: int, noun: str, form: str = "") -> str:
    """Return a count with its noun, thousands separated: `1 worker`, `1,013 workers`; see `plural`."""
    return f"{count:,} {plural(noun, count, form)}"


def join_words(names: Sequence[str], conjunction: str = "and") -> str:
    """Join names: `a`, `a and b`, `a, b and c`; no names give an empty text."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {conjunction} {names[-1]}"


def join_first(names: Sequence[str], most: int = 5, separator: str = ", ") -> str:
    """Join at most `most` names and count the others: `a, b and 3 more`; no names give an empty text."""
    shown = separator.join(names[:most])
    if len(names) <= most:
        return shown
    return f"{shown} and {len(names) - most:,} more"


def elide(names: Sequence[str], most: int) -> str:
    """Join at most `most` names, with `…` in place of the others: `a, b, …`."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append("…")
    return ", ".join(shown)
