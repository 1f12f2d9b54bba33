"""The house: a room imports only rooms below it, and most rooms import no framework."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "scalestudy"
FRAMEWORKS = {"tensorflow", "keras", "horovod", "torch", "jax"}
FRAMEWORK_FREE = ("study", "launch", "cluster", "analysis", "report", "cli", "data", "measure", "check")
BELOW = {
    "cluster": {"study"},
    "study": set(),
    "data": set(),
    "measure": {"cluster", "study"},
    "analysis": {"study"},
    "report": {"analysis", "measure", "study"},
    "launch": {"cluster", "study"},
    "check": {"cluster", "data", "launch", "measure", "strategies", "study"},
    "tasks": set(),
    "strategies": {"cluster"},
    "training": {"strategies", "tasks", "data", "measure", "cluster", "study"},
    "cli": {"report", "analysis", "study", "launch", "cluster", "data", "check", "measure"},
}


def imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms() -> list[str]:
    return sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())


def test_every_room_is_listed():
    assert set(rooms()) == set(BELOW)


@pytest.mark.parametrize("room", rooms())
def test_a_room_imports_only_rooms_below_it(room):
    for file in (SOURCE / room).rglob("*.py"):
        used = {name.split(".")[1] for name in imports(file) if name.startswith("scalestudy.")}
        above = {name for name in used & set(BELOW) if name != room} - BELOW[room]
        assert not above, f"{file.relative_to(SOURCE)} imports {above}"


@pytest.mark.parametrize("room", FRAMEWORK_FREE)
def test_a_login_node_needs_no_framework(room):
    for file in (SOURCE / room).rglob("*.py"):
        used = {name.split(".")[0] for name in imports(file)} & FRAMEWORKS
        assert not used, f"{file.relative_to(SOURCE)} imports {used}"


def test_help_loads_nothing_heavy():
    heavy = FRAMEWORKS | {"pydantic", "polars", "altair", "numpy", "scipy", "sklearn", "PIL"}
    program = (
        "import sys; sys.argv = ['scalestudy', '--help']\n"
        "import scalestudy.cli as cli\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "LOADED []" in done.stdout, done.stdout[-500:] + done.stderr[-500:]
