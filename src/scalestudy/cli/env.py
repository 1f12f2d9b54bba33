"""`scalestudy env`: what an environment was built from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scalestudy.machine.built import Built

SHOWN = (
    "tensorflow", "tensorflow-cpu", "keras", "horovod", "numpy", "scalestudy",
    "nvidia-nccl-cu12", "nvidia-cudnn-cu12", "nvidia-cuda-runtime-cu12",
)  # fmt: skip
"""Packages that decide how training runs; --format json gives all."""


def env(
    path: Annotated[
        Path | None,
        typer.Argument(help="Folder of a virtual environment; this one when absent.", metavar="[PATH]"),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Look at everything anew and keep it in the environment.")
    ] = False,
    format: Annotated[str, typer.Option(help="table or json.", metavar="FORMAT")] = "table",
) -> None:
    """Show what an environment was built from, and the short id that every run's record names it by."""
    import sys

    from scalestudy.cli.console import err
    from scalestudy.cli.formats import check_format
    from scalestudy.errors import UserError
    from scalestudy.files import write_atomically
    from scalestudy.machine.built import RECORD_FILE, describe, describe_other, read_record

    check_format(format)
    prefix = Path(sys.prefix) if path is None else Path(path).expanduser()
    here = prefix.resolve() == Path(sys.prefix).resolve()
    now = describe(builds=record) if here else describe_other(prefix, builds=record)
    found = now
    if record:
        try:
            write_atomically(prefix / RECORD_FILE, now.model_dump_json(indent=1) + "\n")
        except OSError as error:
            raise UserError(
                "an environment that can be written to",
                f"{prefix}: {error.strerror}",
                "Record it as its owner, or leave --record out.",
            ) from error
    else:
        kept = read_record(prefix)
        if kept is not None and kept.id == now.id:
            found = kept.model_copy(update={"packages": now.packages})  # the id leaves our own commit open
        else:
            why = "was never recorded" if kept is None else f"has changed since it was recorded as {kept.id}"
            err().print(
                f"Note: {prefix} {why}; `scalestudy env {prefix} --record` also asks TensorFlow.",
                markup=False,
            )
    print(found.model_dump_json(indent=1) if format == "json" else _text(found))


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
        ("Build: wheel", built.horovod_wheel or ""),
        ("NCCL", ", ".join(built.nccl)),
        ("CUDA", built.cuda or ""),
        ("MPI", built.mpi or ""),
        ("Compiler", built.compiler or ""),
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
