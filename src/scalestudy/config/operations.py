"""Operations of augmentation: their parameters, and lists of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from scalestudy.config.formula import EXAMPLES, Range, WrongFormula, parse_list

_WAYS = ("horizontal", "vertical", "both")
KINDS: Mapping[str, Mapping[str, Range]] = MappingProxyType(
    {
        "flip": {"way": Range("horizontal", words=_WAYS)},
        "rotate90": {},
        "rotate": {"degrees": Range(15.0, 0, 180)},
        "crop": {"least": Range(0.5, 0.01, 1)},
        "brightness": {"amount": Range(0.2, 0, 1)},
        "contrast": {"amount": Range(0.2, 0, 1)},
        "noise": {"sigma": Range(0.02, 0, 1)},
    }
)
"""Operations with their parameters; `scalestudy docs reference/augmentation` describes them."""
GEOMETRIC = ("flip", "rotate90", "rotate", "crop")
"""Operations that move pixels of the image and of its mask."""


@dataclass(frozen=True)
class Operation:
    """One operation: a kind from `KINDS`, and all its parameters by name."""

    kind: str
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


# Cached: each point of a study validates the same few texts.
@lru_cache(maxsize=64)
def operations_of(text: str) -> tuple[Operation, ...]:
    """Parse a list of operations, in order; empty for an empty text.

    Raises:
        WrongFormula: It is not such a list; the error says what is expected.
    """
    if not text.strip():
        return ()
    operations: dict[str, Operation] = {}
    for term in parse_list(text, KINDS, "operation"):
        if term.name in operations:
            expected = f"{EXAMPLES['operation']} each once"
            raise WrongFormula(expected, f"Remove the second {term.name}.")
        # Completed here, so that all spellings of an operation are one.
        values = {}
        for name, allowed in KINDS[term.name].items():
            values[name] = term.parameters.get(name, allowed.default)
        operations[term.name] = Operation(term.name, MappingProxyType(values))
    return tuple(operations.values())


def checked_augmentation(text: str) -> str:
    """Validate the text and return it, for pydantic; raises WrongFormula like `operations_of`."""
    operations_of(text)
    return text
