"""Read a study's folder and analyse its runs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from scalestudy.analysis.decision import EFFICIENCY_TARGET
from scalestudy.analysis.epochs import read_epochs
from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.price import Bill
from scalestudy.analysis.runs import Planned, Run
from scalestudy.analysis.timing import as_training
from scalestudy.config.expand import point_name
from scalestudy.launch.base import Overview, PointStatus
from scalestudy.launch.queue.site import billing_unit
from scalestudy.launch.status import study_status
from scalestudy.store.records import Result
from scalestudy.store.study_folder import RunFolder, StudyFolder

_RULES = {"none": "constant", "linear": "linear", "sqrt": "square-root"}
"""Words for the rules by which the learning rate follows the global batch."""


def read_study(
    folder: StudyFolder,
    target: float = EFFICIENCY_TARGET,
    *,
    bill: Bill | None = None,
    target_quality: float | None = None,
    overview: Overview | None = None,
) -> Findings:
    """Read and analyse a study's folder in any state.

    Args:
        folder: The study.
        target: Cost efficiency that the recommended row must reach.
        bill: Unit that the site bills; from the site profile if None.
        target_quality: Quality for which times are computed; if None, the best one-worker row's minus the
            margin.
        overview: State of its points; looked up if None.
    """
    overview, study = overview or study_status(folder), folder.study
    return analyse(
        folder.name,
        [run for status in overview.points for run in runs_of(status, folder.path)],
        [_planned(status, folder.path) for status in overview.points],
        target,
        bill=bill or billing_unit(folder) or "worker",
        margin=study.quality_margin,
        target_quality=target_quality,
        rate_rule=rate_rule(
            study.train.learning_rate_scaling, tuned="train.learning_rate" in study.sweep.other
        ),
        folder=folder.path,
        zone=study.indifference_zone,
    )


def rate_rule(scaling: str, *, tuned: bool) -> str:
    """Words for the rule by which the learning rate grew with the batch; "" if tuned or unknown."""
    return "" if tuned else _RULES.get(scaling, "")


def runs_of(status: PointStatus, study: Path) -> Iterator[Run]:
    """Yield the finished run of a point, also as that of each point with the same training."""
    if not status.run or not status.result:
        return
    point, run = status.point, read_run(status.run, status.result, study)
    yield run
    for swept in point.also:
        name = point_name(point.strategy, point.workers, point.seed, swept)
        yield replace(run, result=status.result.model_copy(update={"name": name, "swept": swept}))


def read_run(folder: RunFolder, result: Result, study: Path) -> Run:
    """Read what a finished run left; damage to its other records is noted, not raised."""
    epochs, wrong = read_epochs(folder.path)
    if not wrong and len(epochs) != result.epochs:
        wrong = [f"epochs.jsonl holds {len(epochs)} of {result.epochs} epochs"]
    ranks, gallery = tuple(folder.ranks()), folder.gallery_record()
    held, noted = folder.allocations(), folder.disturbance()
    run = Run(
        result,
        epochs,
        _relative(folder, study),
        ranks,
        tuple(wrong),
        gallery,
        allocations=held.jobs if held else (),
        busy=f"other programs used {noted.share:.0%} of its cores" if noted else None,
    )
    return as_training(run)


def _planned(status: PointStatus, study: Path) -> Planned:
    point = status.point
    return Planned(
        name=point.name,
        strategy=point.strategy,
        workers=point.workers,
        seed=point.seed,
        state=status.state,
        swept=tuple(sorted(point.swept.items())),
        folder=_relative(status.run, study) if status.run else None,
        reason=status.reason or None,
        tail=tuple(status.failure.tail) if status.failure else (),
    )


def _relative(run: RunFolder, study: Path) -> str:
    return str(run.path).removeprefix(f"{study}/")
