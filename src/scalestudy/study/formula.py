"""The little language of losses and metrics: `0.5*bce + dice`, `tversky(alpha=0.3, beta=0.7)`. Pure."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Value = float | int | str
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>[-+*(),=]))",
    re.ASCII,
)
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
    reader = _Reader(text, known, what)
    terms = [reader.term(weighted=True)]
    while not reader.over:
        reader.sign("+")
        terms.append(reader.term(weighted=True))
    return tuple(terms)


def parsed_call(text: str, known: Known, what: str) -> Term:
    """The one term of `top_k(k=5)`.

    Raises:
        WrongFormula: If it is none.
    """
    reader = _Reader(text, known, what)
    term = reader.term(weighted=False)
    if not reader.over:
        raise reader.wrong(f"one {what}")
    return term


def called(text: str) -> str:
    """The first name in a text, known or not; "" without one."""
    found = re.search(r"[A-Za-z_]\w*", re.sub(r"\d[eE][-+]?\d", "", text), re.ASCII)
    return found[0] if found else ""


class _Reader:
    """Reads a text from left to right, a token at a time."""

    def __init__(self, text: str, known: Known, what: str) -> None:
        self._known, self._what, self._text = known, what, text
        self._tokens: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None or len(text) > LONGEST:
                raise self.wrong(self._example())
            self._tokens += self._split(str(found.lastgroup), str(found[str(found.lastgroup)]))
            at = found.end()
        self._tokens.reverse()

    def _split(self, kind: str, token: str) -> list[tuple[str, str]]:
        """A `+` after a term adds; only after "=" does it belong to the number."""
        value = not self._tokens or self._tokens[-1] == ("sign", "=")
        return [("sign", "+"), (kind, token[1:])] if token[0] == "+" and len(token) > 1 and not value else [
            (kind, token)
        ]  # fmt: skip

    @property
    def over(self) -> bool:
        return not self._tokens

    def term(self, *, weighted: bool) -> Term:
        """A call, perhaps with a number and `*` before it."""
        weight = 1.0
        if weighted and self._next("number"):
            weight = float(self._take("number"))
            if not 0 < weight <= 1e6:
                raise self.wrong("weights above 0 and at most 1000000")
            self.sign("*")
        name = self._take("name")
        if name not in self._known:
            raise WrongFormula(f"a {self._what} that has a name", _meant(name, self._known))
        parameters: dict[str, Value] = {}
        if self._tokens and self._tokens[-1] == ("sign", "("):
            self.sign("(")
            while self._tokens and self._tokens[-1] != ("sign", ")"):
                if parameters:
                    self.sign(",")
                parameters |= self._parameter(name, parameters)
            self.sign(")")
        return Term(name, parameters, weight)

    def sign(self, wanted: str) -> None:
        """Take this sign."""
        if not self._tokens or self._tokens[-1] != ("sign", wanted):
            raise self.wrong(self._example())
        self._tokens.pop()

    def wrong(self, expected: str) -> WrongFormula:
        """That something else was expected."""
        return WrongFormula(expected, "Correct the formula.")

    def _example(self) -> str:
        return (
            'a sum of losses, as "0.5*bce + dice" or "tversky(alpha=0.3, beta=0.7)",'
            if self._what == "loss"
            else 'a metric, as "f1" or "top_k(k=5)",'
        )

    def _next(self, kind: str) -> bool:
        return bool(self._tokens) and self._tokens[-1][0] == kind

    def _take(self, kind: str) -> str:
        if not self._next(kind):
            raise self.wrong(self._example())
        return self._tokens.pop()[1]

    def _parameter(self, name: str, given: Mapping[str, Value]) -> dict[str, Value]:
        parameter, ranges = self._take("name"), self._known[name]
        if parameter not in ranges or parameter in given:
            has = ", ".join(ranges) or "none"
            raise WrongFormula(
                f"each parameter of {name} once (it has {has}),", _meant(parameter, ranges, "Remove it.")
            )
        self.sign("=")
        word = self._take("number" if self._next("number") else "name")
        value = _value(word, ranges[parameter])
        if value is None:
            told = ranges[parameter].told()
            raise WrongFormula(f"{parameter}={told} for {name}", f"Correct {parameter}={word}.")
        return {parameter: value}


def _value(word: str, allowed: Range) -> Value | None:
    if allowed.words:
        return word if word in allowed.words else None
    try:
        number = int(word) if isinstance(allowed.default, int) else float(word)
    except ValueError:
        return None
    return number if allowed.low <= number <= allowed.high else None


def _meant(name: str, known: Iterable[str], otherwise: str = "") -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    if close:
        return f"Did you mean `{close[0]}`?"
    return otherwise or f"`{name}` is none; there are {', '.join(known)}."
