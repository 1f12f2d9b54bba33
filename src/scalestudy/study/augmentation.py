"""What may be done to training samples, as a study file says it: "flip, rotate(15), mixup(0.2)"."""

import ast
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

MOST = 20
"""Operations in one text."""


@dataclass(frozen=True)
class Parameter:
    """A number, or one of some words, that an operation takes.

    Attributes:
        name: By which it may be given.
        default: What it is when nothing is given.
        least: Smallest number that it may be.
        most: Largest.
        words: The words it may be instead of a number.
        whole: Whether it is a whole number.
    """

    name: str
    default: float | str
    least: float = 0.0
    most: float = 0.0
    words: tuple[str, ...] = ()
    whole: bool = False

    def takes(self, value: Any) -> bool:
        """Whether it may be this."""
        if self.words:
            return value in self.words
        right = isinstance(value, int) if self.whole else isinstance(value, int | float)
        return right and not isinstance(value, bool) and self.least <= value <= self.most

    def __str__(self) -> str:
        if self.words:
            return f"{self.name} one of " + ", ".join(self.words)
        return f"{self.name} {'a whole number ' * self.whole}from {self.least:g} to {self.most:g}"


KINDS: Mapping[str, tuple[Parameter, ...]] = MappingProxyType(
    {
        "flip": (Parameter("way", "horizontal", words=("horizontal", "vertical", "both")),),
        "rotate90": (),
        "rotate": (Parameter("degrees", 15.0, 0.0, 180.0),),
        "scale": (Parameter("low", 0.8, 0.1, 10.0), Parameter("high", 1.25, 0.1, 10.0)),
        "shift": (Parameter("share", 0.1, 0.0, 1.0),),
        "crop": (Parameter("least", 0.5, 0.01, 1.0),),
        "elastic": (Parameter("pixels", 10.0, 0.0, 1000.0), Parameter("grid", 3, 2, 16, whole=True)),
        "brightness": (Parameter("amount", 0.2, 0.0, 1.0),),
        "contrast": (Parameter("amount", 0.2, 0.0, 1.0),),
        "noise": (Parameter("sigma", 0.02, 0.0, 1.0),),
        "mixup": (Parameter("alpha", 0.2, 0.01, 100.0),),
        "cutmix": (Parameter("alpha", 1.0, 0.01, 100.0),),
    }
)
"""What there is, and what each takes; docs/augmentation.md says what each does."""
GEOMETRIC = ("flip", "rotate90", "rotate", "scale", "shift", "crop", "elastic")
"""Those that move pixels: of the image and its mask alike."""
MIXING = ("mixup", "cutmix")
"""Those that put two samples together."""


@dataclass(frozen=True)
class Operation:
    """One thing that is done, with its numbers.

    Attributes:
        kind: One of `KINDS`.
        values: Its parameters by name, all of them.
    """

    kind: str
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


@lru_cache(maxsize=64)
def parsed(text: str) -> tuple[Operation, ...]:
    """The operations that a text asks for, in its order; none of an empty one.

    Raises:
        ValueError: It is no such list; says what would do.
    """
    if not text.strip():
        return ()
    try:
        tree = ast.parse(f"({text},)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError('a list of operations as "flip, rotate(15)"') from None
    if not isinstance(tree, ast.Tuple) or len(tree.elts) > MOST:
        raise ValueError(f'a list of operations as "flip, rotate(15)", {MOST} at most')
    found = tuple(_operation(each) for each in tree.elts)
    kinds = [each.kind for each in found]
    twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
    if twice:
        raise ValueError(f"each operation once (there is {twice[0]} twice)")
    if set(MIXING) <= set(kinds):
        raise ValueError("one of mixup and cutmix")
    return found


def checked(text: str) -> str:
    """The text itself, for pydantic.

    Raises:
        ValueError: As `parsed`.
    """
    parsed(text)
    return text


def _operation(node: ast.expr) -> Operation:
    call = isinstance(node, ast.Call)
    name = node.func if isinstance(node, ast.Call) else node
    if not isinstance(name, ast.Name):
        raise ValueError('a list of operations as "flip, rotate(15)"')
    if name.id not in KINDS:
        close = difflib.get_close_matches(name.id, KINDS, n=1, cutoff=0.5)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise ValueError(f"operations of {', '.join(KINDS)} (there is {name.id}{meant})")
    parameters = KINDS[name.id]
    given = _given(node, parameters) if isinstance(node, ast.Call) and call else {}
    values = {each.name: given.get(each.name, each.default) for each in parameters}
    for each in parameters:
        if not each.takes(values[each.name]):
            raise ValueError(f"{name.id} with {each} (there is {values[each.name]!r})")
    if name.id == "scale" and values["low"] > values["high"]:
        raise ValueError(f"scale with low up to high (there is {values['low']:g} to {values['high']:g})")
    return Operation(name.id, MappingProxyType(values))


def _given(call: ast.Call, parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """Arguments by name."""
    kind = call.func.id if isinstance(call.func, ast.Name) else ""
    names = [each.name for each in parameters]
    takes = f"{kind} with {', '.join(names) or 'nothing in brackets'}"
    given = [*zip(names, call.args, strict=False), *((str(each.arg), each.value) for each in call.keywords)]
    if len(call.args) > len(names) or len({name for name, _ in given}) < len(given):
        raise ValueError(f"{takes}, each once")
    values = {}
    for name, node in given:
        if name not in names:
            raise ValueError(f"{takes} (there is {name})")
        try:
            values[name] = node.id if isinstance(node, ast.Name) else ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            raise ValueError(f"{takes} as plain numbers or words") from None
    return values
