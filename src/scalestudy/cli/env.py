"""`scalestudy check --environment`: what an environment was built from."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalestudy.hardware.installed import Built

SHOWN = (
    "tensorflow", "tensorflow-cpu", "keras", "horovod", "numpy", "scalestudy",
    "nvidia-nccl-cu12", "nvidia-cudnn-cu12", "nvidia-cuda-runtime-cu12",
)  # fmt: skip
"""Packages that decide how training runs; --format json gives all."""


def print_environment(path: Path | None, *, record: bool, form: str) -> None:
    """Print what an environment was built from, and the short id that every run's record names it by.

    Args:
        path: Folder of a virtual environment; this one when None.
        record: Whether to look at everything anew and keep it in the environment.
        form: "table" or "json".
    """
    from scalestudy.cli.console import err

    prefix = Path(sys.prefix) if path is None else path.expanduser()
    built, unrecorded = _record(prefix, record=record)
    if unrecorded:
        err().print(
            f"Note: {prefix} {unrecorded}; `scalestudy check {prefix} --environment --record` also asks"
            " the framework.",
            markup=False,
        )
    print(built.model_dump_json(indent=1) if form == "json" else _text(built))


def _record(prefix: Path, *, record: bool) -> "tuple[Built, str]":
    """What an environment was built from: as recorded where that is still so, else as it is seen now and why.

    Raises:
        UserError: There is no environment with Scalestudy in the folder, or it cannot be written to.
    """
    from scalestudy.hardware.installed import RECORD_FILE, describe, describe_other, read_record
    from scalestudy.util.errors import UserError
    from scalestudy.util.files import write_atomically

    here = prefix.resolve() == Path(sys.prefix).resolve()
    now = describe(builds=record) if here else describe_other(prefix, builds=record)
    if record:
        try:
            write_atomically(prefix / RECORD_FILE, now.model_dump_json(indent=1) + "\n")
        except OSError as error:
            raise UserError(
                "an environment that can be written to",
                f"{prefix}: {error.strerror}",
                "Record it as its owner, or leave --record out.",
            ) from error
        return now, ""
    stored = read_record(prefix)
    if stored is None:
        return now, "was never recorded"
    if stored.id != now.id:
        return now, f"has changed since it was recorded as {stored.id}"
    # The id leaves our own commit open, and the folder may have another name.
    return stored.model_copy(update={"packages": now.packages, "prefix": now.prefix}), ""


def _text(built: "Built") -> str:
    facts = [(name, value) for name, value in _facts(built) if value]
    width = max(len(name) for name, _ in facts) + 2
    return "\n".join([f"Environment {built.id}", *(f"{name:<{width}}{value}" for name, value in facts)])


def _facts(built: "Built") -> list[tuple[str, str]]:
    packages = [(name, built.packages.get(name, "")) for name in SHOWN]
    builds = [
        (f"Build: {name}", _flat(value)) for name, value in built.builds.items() if name != "tensorflow"
    ]
    return [
        ("Folder", built.prefix),
        ("Container", built.container or ""),
        ("Python", built.python),
        *packages,
        ("All packages", str(len(built.packages))),
        *builds,
        *((f"Build: {name} id", value) for name, value in built.build_ids.items()),
        ("Modules", ", ".join(built.modules)),
        ("Host", built.host),
        ("System", built.system),
        ("Processor", built.cpu),
        ("GPUs", ", ".join(built.gpus)),
        ("Driver", built.driver or ""),
        ("Looked at", built.recorded),
    ]


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {'yes' if each else 'no'}" for name, each in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
