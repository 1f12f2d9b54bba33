"""Arguments of a script that follow from its workers: `--global_batch_size {16*workers}`."""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scalestudy.config.formula import suggestion
from scalestudy.util.errors import UserError

OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
NAMES = ("workers", "seed")
LARGEST = 1e12
"""Largest operand: a power of larger ones would not end."""


def fill_arguments(arguments: Sequence[str], *, workers: int, seed: int) -> list[str]:
    """Return the arguments with the value of each expression in braces that names `workers` or `seed`.

    Other braces, as in `{epoch}.keras` or JSON, stay as they are.

    Raises:
        UserError: An expression misspells a name, or has no value.
    """
    values = {"workers": workers, "seed": seed}
    return [re.sub(r"\{([^{}]*)\}", lambda match: _filled(match, values), text) for text in arguments]


def _filled(match: re.Match[str], values: Mapping[str, int]) -> str:
    tree = _expression(match[1])
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else set()
    for name in names - values.keys():
        close = suggestion(name, NAMES)
        if close is None and not names & values.keys():
            return match[0]
        raise UserError(
            f"an expression of {' and '.join(NAMES)} in the script's arguments",
            match[0],
            f"Did you mean `{close}`?" if close else f"{name} has no value here.",
        )
    if tree is None or not names:
        return match[0]
    try:
        value = _value(tree.body, values)
    except (ArithmeticError, ValueError) as error:
        raise UserError(
            f"an expression with + - * / // % ** of {' and '.join(NAMES)}", match[0], f"It has none: {error}."
        ) from error
    return f"{value:g}" if isinstance(value, float) else str(value)


def _expression(text: str) -> ast.Expression | None:
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, values: Mapping[str, int]) -> int | float:
    match node:
        case ast.Name():
            return values[node.id]
        case ast.Constant(value=int() | float()):
            return node.value  # type: ignore[return-value]
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, values)
        case ast.BinOp() if type(node.op) in OPERATORS:
            left, right = _value(node.left, values), _value(node.right, values)
            if max(abs(left), abs(right)) > LARGEST or (isinstance(node.op, ast.Pow) and abs(right) > 64):
                raise ValueError("its numbers are too large")
            return OPERATORS[type(node.op)](left, right)  # type: ignore[no-any-return]
    raise ValueError(f"{ast.unparse(node)} is no arithmetic")
