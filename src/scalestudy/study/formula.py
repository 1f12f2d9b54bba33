"""The little language of losses and metrics: `0.5*bce + dice`, `tversky(alpha=0.3, beta=0.7)`. Pure."""

import ast
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Value = float | int | str
LONGEST = 1000
"""Characters of a formula."""


class WrongFormula(ValueError):
    """A text that names no loss or metric.

    Args:
        expected: What would have been right.
        action: What to do about it.
    """

    def __init__(self, expected: str, action: str) -> None:
        super().__init__(f"Expected {expected}. {action}")
        self.expected, self.action = expected, action


class Range(NamedTuple):
    """What a parameter takes.

    Attributes:
        default: Its value where it is not given; the type says whether it is a whole number.
        low: Least number.
        high: Greatest number.
        words: Words that it takes instead of numbers.
    """

    default: Value
    low: float = 0.0
    high: float = 1e6
    words: tuple[str, ...] = ()

    def told(self) -> str:
        """What it takes, in words."""
        if self.words:
            return " or ".join(self.words)
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"


class Term(NamedTuple):
    """One loss or metric.

    Attributes:
        name: Its name.
        parameters: Of those that it has, the given ones.
        weight: What multiplies it.
    """

    name: str
    parameters: dict[str, Value]
    weight: float = 1.0

    def written(self) -> str:
        """As a study file writes it."""
        given = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        call = f"{self.name}({given})" if given else self.name
        return call if self.weight == 1.0 else f"{self.weight!r}*{call}"


Known = Mapping[str, Mapping[str, Range]]
"""Parameters by name, by the name of what has them."""


def parsed_sum(text: str, known: Known, what: str) -> tuple[Term, ...]:
    """The terms of `0.5*bce + dice`, their weights above 0.

    Args:
        text: The sum.
        known: What there is.
        what: "loss" or "metric", for messages.

    Raises:
        WrongFormula: If it is no such sum.
    """
    node, terms = _expression(text, what), []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        terms.append(_weighted(node.right, known, what))
        node = node.left
    return (_weighted(node, known, what), *reversed(terms))


def parsed_call(text: str, known: Known, what: str) -> Term:
    """The one term of `top_k(k=5)`.

    Raises:
        WrongFormula: If it is none.
    """
    node = _expression(text, what)
    if isinstance(node, ast.BinOp):
        raise WrongFormula(f"one {what}", "Correct the formula.")
    return _term(node, known, what)


def called(text: str) -> str:
    """The first name in a text, known or not; "" without one."""
    found = re.search(r"[A-Za-z_]\w*", re.sub(r"\d[eE][-+]?\d", "", text), re.ASCII)
    return found[0] if found else ""


def _expression(text: str, what: str) -> ast.expr:
    try:
        if len(text) > LONGEST:
            raise ValueError
        return ast.parse(" ".join(text.split()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _no_formula(what) from None


def _no_formula(what: str) -> WrongFormula:
    example = (
        'a sum of losses, as "0.5*bce + dice" or "tversky(alpha=0.3, beta=0.7)",'
        if what == "loss"
        else 'a metric, as "f1" or "top_k(k=5)",'
    )
    return WrongFormula(example, "Correct the formula.")


def _weighted(node: ast.expr, known: Known, what: str) -> Term:
    """A call, perhaps with a number and `*` before it."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return _term(node, known, what)
    weight = _literal(node.left)
    if not isinstance(weight, int | float):
        raise _no_formula(what)
    if not 0 < weight <= 1e6:
        raise WrongFormula("weights above 0 and at most 1000000", "Correct the formula.")
    return _term(node.right, known, what)._replace(weight=float(weight))


def _term(node: ast.expr, known: Known, what: str) -> Term:
    name = node.func if isinstance(node, ast.Call) else node
    if not isinstance(name, ast.Name):
        raise _no_formula(what)
    if name.id not in known:
        raise WrongFormula(f"a {what} that has a name", _meant(name.id, known))
    parameters: dict[str, Value] = {}
    if isinstance(node, ast.Call):
        if node.args:
            raise _no_formula(what)
        for keyword in node.keywords:
            parameters |= _parameter(name.id, keyword, known[name.id], parameters)
    return Term(name.id, parameters)


def _parameter(
    name: str, keyword: ast.keyword, ranges: Mapping[str, Range], given: Mapping[str, Value]
) -> dict[str, Value]:
    parameter = str(keyword.arg)
    if parameter not in ranges or parameter in given:
        has = ", ".join(ranges) or "none"
        raise WrongFormula(
            f"each parameter of {name} once (it has {has}),", _meant(parameter, ranges, "Remove it.")
        )
    value = _allowed(_literal(keyword.value), ranges[parameter])
    if value is None:
        action = f"Correct {parameter}={ast.unparse(keyword.value)}."
        raise WrongFormula(f"{parameter}={ranges[parameter].told()} for {name}", action)
    return {parameter: value}


def _literal(node: ast.expr) -> Value | None:
    """A number, or a name as a text; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    return value if type(value) in (int, float) else None


def _allowed(value: Value | None, allowed: Range) -> Value | None:
    if allowed.words:
        return value if value in allowed.words else None
    if not isinstance(value, int | float) or (isinstance(allowed.default, int) and isinstance(value, float)):
        return None
    return type(allowed.default)(value) if allowed.low <= value <= allowed.high else None  # type: ignore[arg-type]


def _meant(name: str, known: Iterable[str], otherwise: str = "") -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    if close:
        return f"Did you mean `{close[0]}`?"
    return otherwise or f"`{name}` is none; there are {', '.join(known)}."
