"""Commands and what they conduct do not know the launchers by name."""

import ast
from pathlib import Path

import pytest

from scalestudy.study.launchers import names

SOURCE = Path(__file__).parents[2] / "src" / "scalestudy"
FILES = [file for room in ("cli", "conduct") for file in sorted((SOURCE / room).rglob("*.py"))]


def constants(file: Path) -> set[object]:
    return {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_no_command_branches_on_a_launchers_name(file: Path) -> None:
    assert not constants(file) & set(names())


@pytest.mark.parametrize("file", sorted((SOURCE / "conduct").rglob("*.py")), ids=lambda file: file.stem)
def test_what_conducts_prints_nothing(file: Path) -> None:
    used = {node.id for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}
    imported = {
        name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
    }
    assert "print" not in used
    assert not any(name.split(".")[0] in ("rich", "typer") for name in imported)
