"""Versions that go together, read by their metadata in the Python that will run; nothing is imported."""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TypedDict

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from scalestudy.features.check.report import Line, failed, passed, warned
from scalestudy.study.engines import EngineTraits, StrategyLibrary

PYTHON = SpecifierSet(">=3.11,<3.14")
LIMIT = 60.0

_READ = """
import json, platform, sys
from importlib import metadata
asked = json.loads(sys.argv[1])
found = {"python": platform.python_version(), "packages": {}, "built_for": {}}
for name in (*asked["packages"], *asked["built_for"], *asked["libraries"]):
    try:
        found["packages"][name] = metadata.version(name)
        if name in asked["built_for"]:
            text = metadata.distribution(name).locate_file(name + "/metadata.json").read_text()
            found["built_for"][name] = json.loads(text).get(asked["built_for"][name])
    except (metadata.PackageNotFoundError, OSError, ValueError):
        pass
print(json.dumps(found))
"""


class Installed(TypedDict):
    """What a Python has of the packages that were asked for."""

    python: str
    packages: dict[str, str]
    """Versions by name."""
    built_for: dict[str, str | None]
    """Version of the framework that each of its libraries was built for, where it says so."""


def python_of(environment: str | None) -> str:
    """The Python of a virtual environment, or this one."""
    if environment is None:
        return sys.executable
    return str(Path(os.path.expandvars(environment)).expanduser() / "bin" / "python")


def read(python: str, engine: EngineTraits, libraries: Collection[str] = ()) -> Installed | str:
    """Versions in a Python, an engine's and these libraries' among them, or why they cannot be read."""
    asked = {
        "packages": ["scalestudy", *(name for wanted in engine.requirements for name in wanted.packages)],
        "built_for": {library.name: library.built_for for library in engine.libraries},
        "libraries": list(libraries),
    }
    try:
        done = subprocess.run(
            [python, "-c", _READ, json.dumps(asked)], capture_output=True, text=True, timeout=LIMIT,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        installed: Installed = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return f"{python} did not answer within {LIMIT:.0f} s"
    except OSError as error:
        return f"{python}: {error.strerror}"
    except json.JSONDecodeError:
        return f"{python}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}"
    return installed


def judge(
    installed: Installed | str, where: str, engine: EngineTraits, *, libraries: Collection[str]
) -> list[Line]:
    """Lines about what `read` found; `libraries` are those that the study's strategies need."""
    if isinstance(installed, str):
        action = "Build the environment (see environments/), or correct `environment` in the site profile."
        return [failed("versions", where, f"no Python: {installed}", action)]
    packages = installed["packages"]
    lines = [
        _within(
            "Python", installed["python"], PYTHON, where, "Make the environment anew with another Python."
        ),
        _within("Scalestudy", packages.get("scalestudy"), SpecifierSet(), where, "Install it there."),
    ]
    for wanted in engine.requirements:
        have = [name for name in wanted.packages if name in packages]
        if len({packages[name] for name in have}) > 1:
            both = " and ".join(f"{name} {packages[name]}" for name in have)
            action = "Uninstall both; install one."
            lines.append(failed("versions", where, f"{both} overwrite each other", action))
            continue
        version = packages[have[0]] if have else None
        action = f"Run `pip install '{wanted.packages[0]}{wanted.versions}'`."
        lines.append(_within(wanted.label, version, SpecifierSet(wanted.versions), where, action))
    known = {library.name for library in engine.libraries}
    lines += [
        _built(installed, engine, library, where, needed=library.name in libraries)
        for library in engine.libraries
    ]
    lines += [_library(packages, name, where) for name in libraries if name not in known]
    good = [line.seen for line in lines if line.status == "pass"]
    return [passed("versions", where, ", ".join(good)), *(line for line in lines if line.status != "pass")]


def _built(
    installed: Installed, engine: EngineTraits, library: StrategyLibrary, where: str, *, needed: bool
) -> Line:
    """A library that is built for one version of the framework."""
    packages, label, build = installed["packages"], library.label, library.mend
    worse = failed if needed else warned
    version, built_for = packages.get(library.name), installed["built_for"].get(library.name)
    if version is None and not needed:
        return passed("versions", where, f"{label} not installed (not needed)")
    if version is None:
        return failed("versions", where, f"{label} not installed", build)
    framework = next((packages[name] for name in engine.requirements[0].packages if name in packages), None)
    if built_for is None or built_for == "none":
        return worse("versions", where, f"{label} {version} built without {engine.label}", build)
    if built_for != framework:
        seen = f"{label} {version} built for {engine.label} {built_for}, beside {framework or 'none'}"
        return worse("versions", where, seen, build)
    if not _fits(version, SpecifierSet(library.versions)):
        seen = f"{label} {version}; tried with {library.versions}"
        return warned("versions", where, seen, "Look at the collectives.")
    return passed("versions", where, f"{label} {version}, built for {engine.label} {built_for}")


def _library(packages: dict[str, str], name: str, where: str) -> Line:
    if name not in packages:
        action = f"Run `pip install {name}` there: a strategy of the study needs it."
        return failed("versions", where, f"{name} not installed", action)
    return passed("versions", where, f"{name} {packages[name]}")


def _within(name: str, version: str | None, wanted: SpecifierSet, where: str, action: str) -> Line:
    if version is None:
        return failed("versions", where, f"{name} not installed", action)
    if not _fits(version, wanted):
        return failed("versions", where, f"{name} {version}, but {wanted} is needed", action)
    return passed("versions", where, f"{name} {version}")


def _fits(version: str, wanted: SpecifierSet) -> bool:
    try:
        return wanted.contains(Version(version).base_version)
    except InvalidVersion:
        return False
