"""A package imports only packages below it, and most import no framework."""

import ast
import collections
import graphlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import scalestudy
import synthetic

SOURCE = Path(__file__).parents[1] / "src" / "scalestudy"
FRAMEWORKS = {"tensorflow", "keras", "horovod", "torch", "jax"}
ORDER = (
    *("cli", "features", "app", "report", "analysis", "training", "engines"),
    *(
        "launch",
        "tasks",
        "data",
        "measure",
        "cluster",
        "hardware",
        "store",
        "config",
        "plugins",
        "util",
    ),
)
"""From top to bottom: a package imports only packages that follow it."""
WITH_FRAMEWORK = {"engines", "tasks"}


@cache
def syntax(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imports(file: Path) -> set[str]:
    result = set()
    for node in ast.walk(syntax(file)):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            result |= {node.module} | {
                f"{node.module}.{alias.name}" for alias in node.names
            }
    return result


def constants(file: Path) -> set[str]:
    return {
        node.value
        for node in ast.walk(syntax(file))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_package_is_listed():
    assert sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")) == sorted(
        ORDER
    )


@pytest.mark.slow
def test_a_package_imports_only_packages_below_it():
    for place, package in enumerate(ORDER):
        for file in (SOURCE / package).rglob("*.py"):
            # Also names for importing later, as in "scalestudy.tasks.cnn" and "scalestudy.worker:main".
            later = {
                name
                for name in constants(file)
                if re.fullmatch(r"scalestudy(\.\w+){2,}(:\w+)?", name)
            }
            later = (
                set() if file.name == "modules.py" else later
            )  # these become processes
            used = {
                name.split(".")[1]
                for name in imports(file) | later
                if name.startswith("scalestudy.")
            }
            above = used & set(ORDER[:place])
            assert not above, f"{file.relative_to(SOURCE)} imports {above}"


def test_no_imports_go_round_in_a_circle():
    """Neither those inside functions nor those for annotations."""
    files = {
        ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): file
        for file in SOURCE.rglob("*.py")
    }
    graph = {
        name: imports(file) & files.keys() - {name} for name, file in files.items()
    }
    graphlib.TopologicalSorter(
        graph
    ).prepare()  # raises CycleError, which names the circle


def test_what_is_started_as_a_process_is_named_in_one_place():
    names = {
        value
        for value in constants(SOURCE / "util" / "modules.py")
        if value.startswith("scalestudy.")
    }
    for name in names:
        assert importlib.util.find_spec(name) is not None
    for file in SOURCE.rglob("*.py"):
        if file.name != "modules.py":
            result = {
                value
                for value in constants(file)
                if value in names or value.startswith("scalestudy.worker")
            }
            assert not result, f"{file.relative_to(SOURCE)} names {result}"


def features() -> list[Path]:
    """Folders and single files."""
    return sorted(
        path
        for path in (SOURCE / "features").iterdir()
        if not path.name.startswith("__")
    )


def test_a_feature_imports_no_other_feature():
    for feature in features():
        for file in feature.rglob("*.py") if feature.is_dir() else [feature]:
            used = {
                name
                for name in imports(file)
                if name.startswith("scalestudy.features.")
            }
            others = {name for name in used if name.split(".")[2] != feature.stem}
            assert not others, f"{file.relative_to(SOURCE)} imports {others}"


@pytest.mark.slow
def test_the_core_works_without_features(tmp_path):
    """Remove all features with their registry entries at once, since none imports another.

    Commands import them only when called.
    """
    tree, study = tmp_path / "scalestudy", tmp_path / "study"
    synthetic.write(study, "made", synthetic.seeded((1, 2), ("horovod",), 2))
    shutil.copytree(SOURCE, tree)
    shutil.rmtree(tree / "features")
    for file in tree.rglob("*.py"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text(
            "".join(line for line in lines if '"scalestudy.features.' not in line)
        )
    program = (
        "import scalestudy.worker\n"
        "from scalestudy.analysis.findings import read_study\n"
        "from scalestudy.cli import main\n"
        "from scalestudy.report.formats import sections\n"
        "from scalestudy.store.study_folder import StudyFolder\n"
        f"assert sections(read_study(StudyFolder.open({str(study)!r})))\n"
        f"main(['report', {str(study)!r}])"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "horovod" in done.stdout


def test_a_package_of_other_authors_needs_only_public_names():
    for name in scalestudy.__all__:
        assert getattr(scalestudy, name).__doc__, name
    for file in Path(__file__).parent.glob("plugins/thirdparty/*.py"):
        used = {name for name in imports(file) if name.startswith("scalestudy")}
        names = {
            name
            for name in used
            if not name.startswith(("scalestudy.losses", "scalestudy.metrics"))
        }
        assert names <= {
            "scalestudy",
            *(f"scalestudy.{name}" for name in scalestudy.__all__),
        }, file.name


def test_a_login_node_needs_no_framework():
    for package in set(ORDER) - WITH_FRAMEWORK:
        for file in (SOURCE / package).rglob("*.py"):
            used = {name.split(".")[0] for name in imports(file)} & FRAMEWORKS
            assert not used, f"{file.relative_to(SOURCE)} imports {used}"


def test_no_two_public_classes_share_a_name():
    files = collections.defaultdict(list)
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(syntax(file)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(str(file.relative_to(SOURCE)))
    twice = {name: where for name, where in files.items() if len(where) > 1}
    assert not twice


def test_help_loads_nothing_heavy():
    heavy = FRAMEWORKS | {
        "pydantic",
        "polars",
        "altair",
        "numpy",
        "scipy",
        "sklearn",
        "PIL",
    }
    program = (
        "import sys; sys.argv = ['scalestudy', '--help']\n"
        "import scalestudy.cli as cli\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "LOADED []" in done.stdout, done.stdout[-500:] + done.stderr[-500:]


@pytest.mark.slow
def test_only_hardware_asks_nvml_and_reads_which_devices_are_visible():
    for file in SOURCE.rglob("*.py"):
        if file.parent != SOURCE / "hardware":
            names = {name.split(".")[0] for name in imports(file)} | constants(file)
            asked = [
                name
                for name in names
                if re.match(r"pynvml\b|CUDA_VISIBLE_DEVICES(=|$)", name)
            ]
            assert not asked, (
                f"{file.relative_to(SOURCE)} uses {asked}: ask scalestudy.hardware"
            )


def test_no_file_in_the_users_working_folder_is_taken_for_a_module():
    """A worker runs in its run folder; all other processes start in the user's working folder."""
    started = re.compile(r'"-m", (?!modules\.WORKER)')
    for file in SOURCE.rglob("*.py"):
        for result in started.finditer(text := file.read_text()):
            assert text[: result.start()].endswith('"-P", '), (
                f"{file.relative_to(SOURCE)} starts -m without -P"
            )
