"""The language of losses, metrics and augmentation: `0.5*bce + dice`, `top_k(k=5)`, `flip, rotate(15)`."""

import ast
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Value = float | int | str
LONGEST = 1000
"""Largest number of characters of a formula."""
EXAMPLES = {
    "loss": 'a sum of losses such as "0.5*bce + dice" or "focal(gamma=2)",',
    "metric": 'a metric such as "f1" or "top_k(k=5)",',
    "operation": 'a list of operations such as "flip, rotate(15)",',
}
"""What is expected, by the kind of formula."""


class WrongValue(ValueError):
    """A value that its key does not accept: what is expected, and a remedy if known."""

    def __init__(self, expected: str, action: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.action = action


class WrongFormula(WrongValue):
    """A text that is not a valid loss, metric or operation."""

    def __init__(self, expected: str, action: str = "Correct the formula.") -> None:
        super().__init__(expected, action)


def suggestion(word: str, known: Iterable[str]) -> str | None:
    """The known word that the user probably meant."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    if not close:
        return None
    return close[0]


class Range(NamedTuple):
    """Values that a parameter accepts: integers if its default is one, otherwise numbers; or `words`."""

    default: Value
    low: float = 0.0
    high: float = 1e6
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.words:
            return " or ".join(self.words)
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"

    def allowed(self, value: Value | None) -> Value | None:
        """Return the value in the type of the default, or None if the parameter does not accept it."""
        if self.words:
            return value if value in self.words else None
        whole = isinstance(self.default, int)
        if not isinstance(value, int | float):
            return None
        if whole and isinstance(value, float):
            return None
        if not self.low <= value <= self.high:
            return None
        # As the default, so that 1 and 1.0 are one value in records and names.
        if whole:
            return value
        return float(value)


class FormulaTerm(NamedTuple):
    """One loss, metric or operation, with the given parameters and its factor."""

    name: str
    parameters: dict[str, Value]
    weight: float = 1.0

    def __str__(self) -> str:
        call = self.name
        if self.parameters:
            given = [f"{name}={value}" for name, value in self.parameters.items()]
            call += f"({', '.join(given)})"
        if self.weight == 1.0:
            return call
        return f"{self.weight!r}*{call}"


Known = Mapping[str, Mapping[str, Range]]
"""Parameters by name, for each known loss, metric or operation."""


def parse_sum(text: str, known: Known, what: str) -> tuple[FormulaTerm, ...]:
    """Return the terms of `0.5*bce + dice`, with positive weights; `what` is a key of `EXAMPLES`.

    Raises:
        WrongFormula: The text is not such a sum.
    """
    node = _expression(text, what)
    terms = []
    # `a + b + c` is parsed as `(a + b) + c`, so the last term comes first.
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        terms.append(_weigh(node.right, known, what))
        node = node.left
    first = _weigh(node, known, what)
    return (first, *reversed(terms))


def parse_call(text: str, known: Known, what: str) -> FormulaTerm:
    """Return the single term of `top_k(k=5)`; raises WrongFormula for other texts."""
    node = _expression(text, what)
    if isinstance(node, ast.BinOp):
        raise WrongFormula(f"one {what}")
    return _term(node, known, what)


def parse_list(text: str, known: Known, what: str) -> tuple[FormulaTerm, ...]:
    """Return the terms of `flip, rotate(15)`, whose parameters need no names.

    Raises:
        WrongFormula: The text is not such a list.
    """
    node = _expression(f"({text},)", what)
    if not isinstance(node, ast.Tuple):
        raise WrongFormula(EXAMPLES[what])
    return tuple([_term(element, known, what) for element in node.elts])


def first_name(text: str) -> str:
    """The first name in a text, known or not; "" if there is none."""
    # The e of `1e-3` is no name.
    without_exponents = re.sub(r"\d[eE][-+]?\d", "", text)
    match = re.search(r"[A-Za-z_]\w*", without_exponents, re.ASCII)
    if match is None:
        return ""
    return match[0]


def is_formula(text: str, known: Known) -> bool:
    """Whether a text is a formula, or one of the `known` names, rather than a name of Keras's."""
    if first_name(text) in known:
        return True
    is_one_word = text.replace("_", "").isalnum()
    return not is_one_word


def _expression(text: str, what: str) -> ast.expr:
    try:
        if len(text) > LONGEST:
            raise ValueError
        # In Python's grammar, which has brackets and numbers already; nothing is evaluated.
        return ast.parse(" ".join(text.split()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise WrongFormula(EXAMPLES[what]) from None


def _weigh(node: ast.expr, known: Known, what: str) -> FormulaTerm:
    """A term, optionally with a factor before it."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return _term(node, known, what)
    weight = _literal(node.left)
    if not isinstance(weight, int | float):
        raise WrongFormula(EXAMPLES[what])
    if not 0 < weight <= 1e6:
        raise WrongFormula("weights above 0 and at most 1000000")
    return _term(node.right, known, what)._replace(weight=float(weight))


def _term(node: ast.expr, known: Known, what: str) -> FormulaTerm:
    called: ast.expr = node
    positional: list[ast.expr] = []
    keywords: list[ast.keyword] = []
    if isinstance(node, ast.Call):
        called = node.func
        positional = node.args
        keywords = node.keywords
    if not isinstance(called, ast.Name):
        raise WrongFormula(EXAMPLES[what])
    name = called.id
    if name not in known:
        listed = f"`{name}` is unknown; choose from {', '.join(known)}."
        raise WrongFormula(f"a known {what}", _did_you_mean(name, known, listed))
    ranges = known[name]
    it_has = ", ".join(ranges) or "none"
    listed = f"(it has {it_has}),"
    # Operations alone take parameters without names: `rotate(15)`.
    most = len(ranges) if what == "operation" else 0
    if len(positional) > most:
        raise WrongFormula(f"parameters of {name} by name {listed}")
    arguments: list[tuple[str, ast.expr]] = []
    arguments += zip(ranges, positional, strict=False)
    for keyword in keywords:
        arguments.append((str(keyword.arg), keyword.value))
    parameters: dict[str, Value] = {}
    for parameter, argument in arguments:
        if parameter not in ranges or parameter in parameters:
            action = _did_you_mean(parameter, ranges, f"Remove {parameter}.")
            raise WrongFormula(f"each parameter of {name} once {listed}", action)
        accepted = ranges[parameter]
        value = accepted.allowed(_literal(argument))
        if value is None:
            action = f"Correct {parameter}={ast.unparse(argument)}."
            raise WrongFormula(f"{parameter}={accepted} for {name}", action)
        parameters[parameter] = value
    return FormulaTerm(name, parameters)


def _did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    close = suggestion(word, known)
    if close is None:
        return otherwise
    return f"Did you mean `{close}`?"


def _literal(node: ast.expr) -> Value | None:
    """A number, or a text with or without quotes; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    # By type, since True is an int too.
    if type(value) not in (int, float, str):
        return None
    literal: Value = value
    return literal
