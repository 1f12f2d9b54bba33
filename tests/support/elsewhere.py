"""Runs from imported measurements, for which few values are known."""

from typing import Any

from scalestudy.analysis.runs import Run, RunSource
from scalestudy.store.records import EpochOutcome, Outcome


def foreign(
    workers: int,
    *,
    strategy: str = "horovod",
    file: str = "times.csv",
    line: int = 2,
    epochs: Any = (),
    **known: Any,
) -> Run:
    """A run with only the values `known`; `epochs` are seconds."""
    outcome = Outcome(
        name=f"{strategy}-w{workers} ({file}, line {line})",
        strategy=strategy,
        implementation=strategy,
        workers=workers,
        **known,
    )
    records = tuple(EpochOutcome(epoch=i, train_seconds=seconds) for i, seconds in enumerate(epochs, start=1))
    return Run(outcome, records, source=RunSource(file, (line, line)))


def cassava() -> list[Run]:
    """Published training times in seconds."""
    seconds = {1: 562.0, 2: 332.0, 3: 249.0, 4: 214.0}
    return [foreign(n, line=n + 1, training_seconds=time) for n, time in seconds.items()]
