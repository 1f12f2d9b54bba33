"""Commands and the functions they call do not depend on the names of launchers."""

import ast
from pathlib import Path

from scalestudy.launch.launcher import LAUNCHERS

SOURCE = Path(__file__).parents[2] / "src" / "scalestudy"
FILES = [
    file
    for package in ("cli", "app")
    for file in sorted((SOURCE / package).rglob("*.py"))
]


def constants(file: Path) -> set[object]:
    return {
        node.value
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant)
    }


def test_no_command_branches_on_a_launchers_name() -> None:
    assert [file for file in FILES if constants(file) & set(LAUNCHERS.names())] == []


def test_what_conducts_prints_nothing() -> None:
    for file in sorted((SOURCE / "app").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        imported = {
            name
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in [
                getattr(node, "module", None) or "",
                *(alias.name for alias in node.names),
            ]
        }
        assert not any(
            isinstance(node, ast.Name) and node.id == "print" for node in nodes
        ), file
        assert not any(name.split(".")[0] in ("rich", "typer") for name in imported), (
            file
        )
