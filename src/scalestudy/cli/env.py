"""`scalestudy check --environment`: the versions in an environment."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.cli.console import writing

if TYPE_CHECKING:
    from scalestudy.hardware.installed import Built

OF_CUDA = ("nvidia-nccl-", "nvidia-cudnn-", "nvidia-cuda-runtime")
"""Prefixes of the CUDA packages that are shown."""


def print_environment(path: Path | None, *, record: bool, form: str) -> None:
    """Print the versions in an environment (by default this one), and its id in records."""
    from scalestudy.plugins.engines import engine_names, engine_traits

    prefix = Path(sys.prefix) if path is None else path.expanduser()
    built = _record(prefix, record=record)
    if form == "json":
        print(built.model_dump_json(indent=1))
        return
    print(f"Environment {built.id}")
    shown = built.model_dump(exclude={"schema_version", "id", "name"})
    known, found = engine_names(), built.packages
    decisive = [name for engine in map(engine_traits, known) for name in engine.packages]
    decisive += ["numpy", "scalestudy", *(name for name in found if name.startswith(OF_CUDA))]
    # Only packages that affect training; --format json shows all.
    shown["packages"] = {name: found[name] for name in dict.fromkeys(decisive) if name in found}
    shown["build_ids"] = {
        engine_traits(name).built if name in known else name: build
        for name, build in built.build_ids.items()
        if build
    }
    for name, value in shown.items():
        if value:
            print(f"{name:<11} {_flat(value)}")


def _record(prefix: Path, *, record: bool) -> "Built":
    """Contents of an environment: its record if still correct, else its current contents.

    Raises:
        UserError: The folder has no environment with Scalestudy, or cannot be written.
    """
    from scalestudy.hardware.installed import RECORD_FILE, describe, describe_other, read_record
    from scalestudy.util.files import write_atomically

    here = prefix.resolve() == Path(sys.prefix).resolve()
    now = describe(builds=record) if here else describe_other(prefix, builds=record)
    if record:
        with writing(prefix / RECORD_FILE):
            write_atomically(prefix / RECORD_FILE, now.model_dump_json(indent=1) + "\n")
        return now
    stored = read_record(prefix)
    if stored is None or stored.id != now.id:
        return now
    # The id does not cover Scalestudy's own commit, and the folder may have been renamed.
    return stored.model_copy(update={"packages": now.packages, "prefix": now.prefix})


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flat(inner)}" for name, inner in value.items() if inner != "")
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
