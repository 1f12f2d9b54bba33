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
BRACES = re.compile(r"\{([^{}]*)\}")
LARGEST = 1e12
"""Largest operand."""
LARGEST_POWER = 64
Number = int | float
Values = Mapping[str, int]


def fill_arguments(arguments: Sequence[str], *, workers: int, seed: int) -> list[str]:
    """Return the arguments with the value of each expression in braces that names `workers` or `seed`.

    Other braces, as in `{epoch}.keras` or JSON, stay as they are.

    Raises:
        UserError: An expression misspells a name, or has no value.
    """
    values = {"workers": workers, "seed": seed}

    def fill(match: re.Match[str]) -> str:
        return _filled(match[1], values)

    return [BRACES.sub(fill, text) for text in arguments]


def _filled(text: str, values: Values) -> str:
    """Return the value of the expression between two braces, or the text as it was."""
    unchanged = f"{{{text}}}"
    tree = _expression(text)
    if tree is None:
        return unchanged
    names = _names(tree)
    if not names:
        return unchanged
    unknown = names.difference(values)
    if unknown:
        name = min(unknown)
        close = suggestion(name, NAMES)
        # `{epoch}` is the script's own. `{16*worker}` and `{batch*workers}` are mistakes, which the script would get
        # as they stand.
        is_meant = close is not None or unknown != names
        if not is_meant:
            return unchanged
        remedy = f"{name} has no value here."
        if close is not None:
            remedy = f"Did you mean `{close}`?"
        raise UserError(
            "an expression of workers and seed in the script's arguments",
            unchanged,
            remedy,
        )
    try:
        value = _value(tree.body, values)
    except (ArithmeticError, ValueError) as error:
        raise UserError(
            "an expression of workers and seed with + - * / // % **",
            unchanged,
            f"It has no value: {error}.",
        ) from error
    if isinstance(value, float):
        # 0.1 * 3 is 0.3, not 0.30000000000000004.
        return f"{value:g}"
    return str(value)


def _expression(text: str) -> ast.Expression | None:
    """Return the syntax tree of an expression, or None for any other text."""
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _names(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
    return names


def _value(node: ast.expr, values: Values) -> Number:
    """Compute an arithmetic expression. Nothing else is evaluated, since `eval` would run any code.

    Raises:
        ValueError: It is no arithmetic, or its numbers are too large.
        ArithmeticError: It divides by zero.
    """
    match node:
        case ast.Name():
            return values[node.id]
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, values)
        case ast.BinOp() if type(node.op) in OPERATORS:
            left = _value(node.left, values)
            right = _value(node.right, values)
            _refuse_large(node.op, left, right)
            compute = OPERATORS[type(node.op)]
            result: Number = compute(left, right)
            return result
    raise ValueError(f"{ast.unparse(node)} is no arithmetic")


def _refuse_large(operation: ast.operator, left: Number, right: Number) -> None:
    """Refuse operands whose power would take all memory, or all time."""
    too_large = abs(left) > LARGEST or abs(right) > LARGEST
    if isinstance(operation, ast.Pow) and abs(right) > LARGEST_POWER:
        too_large = True
    if too_large:
        raise ValueError("its numbers are too large")
