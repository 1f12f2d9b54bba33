"""Runs from imported measurements, for which few values are known."""

from typing import Any

from scalestudy.analysis.runs import Run, RunSource
from scalestudy.store.records import Outcome


def imported_run(
    workers: int,
    *,
    strategy: str = "horovod",
    file: str = "times.csv",
    line: int = 2,
    epoch_seconds: float | None = None,
    **known: Any,
) -> Run:
    """A run with only these values."""
    outcome = Outcome(
        name=f"{strategy}-w{workers} ({file}, line {line})",
        strategy=strategy,
        implementation=strategy,
        workers=workers,
        **known,
    )
    return Run(outcome, source=RunSource(file, line), epoch_seconds=epoch_seconds)


def cassava() -> list[Run]:
    """Published training times in seconds."""
    seconds = {1: 562.0, 2: 332.0, 3: 249.0, 4: 214.0}
    return [
        imported_run(n, line=n + 1, training_seconds=time)
        for n, time in seconds.items()
    ]
