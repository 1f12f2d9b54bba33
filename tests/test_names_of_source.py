"""Tests and benchmarks use names that the package has: a test that runs rarely else breaks unseen."""

import ast
import re
import symtable
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from paths import PROJECT, SOURCE

FILES = sorted(
    path
    for folder in ("tests", "benchmarks", "docs", "course", "notebooks", "environments")
    for path in (PROJECT / folder).rglob("*.py")
)
IMPORT_IN_TEXT = re.compile(r"from (scalestudy(?:\.\w+)*) import (\w+(?:, \w+)*)")


def module_file(module: str) -> Path | None:
    """Return the file of a module of the package; None if there is none."""
    path = SOURCE.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


@cache
def names_in(module: str) -> frozenset[str]:
    """Return the names that a module assigns, defines or imports at its top level."""
    file = module_file(module)
    assert file is not None
    table = symtable.symtable(file.read_text(), str(file), "exec")
    names = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    if module == "scalestudy":
        import scalestudy

        names |= {"__version__", *dir(scalestudy)}
    return frozenset(names | {"__name__", "__file__", "__doc__"})


def has(module: str, name: str) -> bool:
    """Whether a module has a name or a submodule of that name."""
    return name in names_in(module) or module_file(f"{module}.{name}") is not None


def of_package(statement: ast.ImportFrom) -> bool:
    return (statement.module or "").startswith("scalestudy")


def imported(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield module, name and local name of each `from … import …` of the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and of_package(node):
            for alias in node.names:
                yield str(node.module), alias.name, alias.asname or alias.name


def used(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield module and name of everything that a file takes from the package by name."""
    modules = {}
    others = rebound(tree)
    for module, name, local in imported(tree):
        yield module, name
        if module_file(f"{module}.{name}") is not None and local not in others:
            modules[local] = f"{module}.{name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in modules:
                yield modules[node.value.id], node.attr
        elif isinstance(node, ast.Call):
            yield from replaced(node, modules)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names in IMPORT_IN_TEXT.findall(node.value):
                for name in names.split(", "):
                    yield module, name


def rebound(tree: ast.Module) -> set[str]:
    """Return names that a file gives another meaning too: by an assignment, an argument or another import."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ImportFrom) and not of_package(node):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def replaced(call: ast.Call, modules: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield module and name of what `monkeypatch.setattr` replaces."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "setattr":
        return
    match call.args:
        case [ast.Name(id=local), ast.Constant(value=str(name)), *_]:
            if local in modules:
                yield modules[local], name
        case [ast.Constant(value=str(dotted)), *_] if dotted.startswith("scalestudy."):
            module, _, name = dotted.rpartition(".")
            while module_file(module) is None:  # an attribute of a name of the module
                module, _, name = module.rpartition(".")
            yield module, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_what_a_file_uses_of_the_package_exists(path):
    tree = ast.parse(path.read_text())
    faults = []
    for module, name in used(tree):
        if module_file(module) is None or not has(module, name):
            faults.append(f"{module}.{name}")
    assert not faults
