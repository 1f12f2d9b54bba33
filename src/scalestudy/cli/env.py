"""`scalestudy check --environment`: what an environment was built from."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalestudy.hardware.built import Built

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
    from scalestudy.app.environment import environment_record
    from scalestudy.cli.console import err

    found = environment_record(path, record=record)
    if found.unrecorded:
        prefix = found.prefix
        err().print(
            f"Note: {prefix} {found.unrecorded}; `scalestudy check {prefix} --environment --record` also asks"
            " the framework.",
            markup=False,
        )
    built = found.built
    print(built.model_dump_json(indent=1) if form == "json" else _text(built))


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
        ("CUDA", built.cuda or ""),
        ("MPI", built.mpi or ""),
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
