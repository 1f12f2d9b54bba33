"""Versions that go together, read by their metadata in the Python that will run; nothing is imported."""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TypedDict

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from scalestudy.check.line import Line, failed, passed, warned
from scalestudy.engines.tensorflow.collective_table import LIBRARY

PYTHON = SpecifierSet(">=3.11,<3.14")
TENSORFLOW = SpecifierSet(">=2.21,<2.22")
KERAS = SpecifierSet(">=3.12,<4")
HOROVOD = SpecifierSet("==0.28.*")
NAMES = ("tensorflow", "tensorflow-cpu")
"""Packages that bring `import tensorflow`."""
LIMIT = 60.0

_READ = """
import json, platform, sys
from importlib import metadata, util
built, *libraries = sys.argv[1:]
names = ("scalestudy", "tensorflow", "tensorflow-cpu", "keras", "numpy", "protobuf", built)
found = {"python": platform.python_version(), "packages": {}, "needs": [], "built_for": None}
for name in (*names, *libraries):
    try:
        found["packages"][name] = metadata.version(name)
        if name.startswith("tensorflow"):
            found["needs"] = metadata.requires(name) or []
        if name == built:
            text = metadata.distribution(name).locate_file(name + "/metadata.json").read_text()
            found["built_for"] = json.loads(text).get("tensorflow")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        pass
for name in libraries:
    if name not in found["packages"]:
        try:
            spec = util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is not None and spec.origin is not None:
            found["packages"][name] = ""
print(json.dumps(found))
"""


class Installed(TypedDict):
    """What a Python has of the packages that were asked for.

    Attributes:
        python: Its own version.
        packages: Versions by name; "" of a module that can be imported, but is of no package of that name.
        needs: Requirements of TensorFlow.
        built_for: Version of TensorFlow that Horovod was built for; None where it does not say.
    """

    python: str
    packages: dict[str, str]
    needs: list[str]
    built_for: str | None


def python_of(environment: str | None) -> str:
    """The Python of a virtual environment, or this one."""
    if environment is None:
        return sys.executable
    return str(Path(os.path.expandvars(environment)).expanduser() / "bin" / "python")


def read(python: str, libraries: Collection[str] = ()) -> Installed | str:
    """Versions in a Python, these libraries' among them, or why they cannot be read."""
    try:
        done = subprocess.run(
            [python, "-c", _READ, LIBRARY, *libraries], capture_output=True, text=True, timeout=LIMIT,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        found: Installed = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return f"{python} did not answer within {LIMIT:.0f} s"
    except OSError as error:
        return f"{python}: {error.strerror}"
    except json.JSONDecodeError:
        return f"{python}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}"
    return found


def judge(found: Installed | str, where: str, *, libraries: Collection[str]) -> list[Line]:
    """Lines about versions.

    Args:
        found: What `read` found.
        where: Host, for the lines.
        libraries: That the study's strategies need beside the engine.
    """
    if isinstance(found, str):
        action = "Build the environment (see environments/), or correct `environment` in the site profile."
        return [failed("versions", where, f"no Python: {found}", action)]
    packages = found["packages"]
    lines = [
        _within("Python", found["python"], PYTHON, where, "Make the environment anew with another Python."),
        _within("Scalestudy", packages.get("scalestudy"), SpecifierSet(), where, "Install it there."),
        *_tensorflow(packages, where),
        _within("Keras", packages.get("keras"), KERAS, where, f"Run `pip install 'keras{KERAS}'`."),
    ]
    for need in sorted(map(Requirement, found["needs"]), key=lambda need: need.name):
        if need.name in ("numpy", "protobuf") and (need.marker is None or need.marker.evaluate()):
            name = {"numpy": "NumPy"}.get(need.name, need.name)
            action = f"Run `pip install '{need.name}{need.specifier}'`."
            lines.append(_within(name, packages.get(need.name), need.specifier, where, action))
    lines.append(_horovod(packages, found["built_for"], where, needed=LIBRARY in libraries))
    lines += [_library(packages, name, where) for name in libraries if name != LIBRARY]
    good = [line.seen for line in lines if line.status == "pass"]
    return [passed("versions", where, ", ".join(good)), *(line for line in lines if line.status != "pass")]


def _tensorflow(packages: dict[str, str], where: str) -> list[Line]:
    versions = {packages[name] for name in NAMES if name in packages}
    if len(versions) > 1:
        both = " and ".join(f"{name} {packages[name]}" for name in NAMES)
        return [failed("versions", where, f"{both} overwrite each other", "Uninstall both; install one.")]
    action = f"Run `pip install 'tensorflow{TENSORFLOW}'`."
    return [_within("TensorFlow", next(iter(versions), None), TENSORFLOW, where, action)]


def _horovod(packages: dict[str, str], built_for: str | None, where: str, *, needed: bool) -> Line:
    version = packages.get(LIBRARY)
    build = "Build it against this TensorFlow (environments/build-horovod.sh)."
    if version is None and not needed:
        return passed("versions", where, "Horovod not installed (not needed)")
    if version is None:
        return failed("versions", where, "Horovod not installed", build)
    tensorflow = next((packages[name] for name in NAMES if name in packages), None)
    if built_for is None or built_for == "none":
        action = build if needed else build[:-1] + ", or leave it out."
        return (failed if needed else warned)(
            "versions", where, f"Horovod {version} built without TensorFlow", action
        )
    if built_for != tensorflow:
        seen = f"Horovod {version} built for TensorFlow {built_for}, beside {tensorflow or 'none'}"
        return (failed if needed else warned)("versions", where, seen, build)
    if not _fits(version, HOROVOD):
        return warned(
            "versions", where, f"Horovod {version}; tried with {HOROVOD}", "Look at the collectives."
        )
    return passed("versions", where, f"Horovod {version}, built for TensorFlow {built_for}")


def _library(packages: dict[str, str], name: str, where: str) -> Line:
    if name not in packages:
        action = f"Run `pip install {name}` there: a strategy of the study needs it."
        return failed("versions", where, f"{name} not installed", action)
    return passed("versions", where, f"{name} {packages[name]}".strip())


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
