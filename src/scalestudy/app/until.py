"""Run a study until it is decided: after each batch of runs, its findings name the next."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scalestudy.analysis.decision import INDIFFERENCE_ZONE, Decision
from scalestudy.analysis.findings import Findings, read_study
from scalestudy.analysis.measures import Measures, measure_rows
from scalestudy.analysis.next_runs import (
    GRID_SEEDS,
    Batch,
    Ended,
    Known,
    Limits,
    Until,
    next_runs,
)
from scalestudy.analysis.price import Bill, units_of
from scalestudy.analysis.runs import Key, RunsByRow, key_of
from scalestudy.analysis.runs import order as reading_order
from scalestudy.analysis.same_model import MODEL
from scalestudy.analysis.sequential import LOOKS
from scalestudy.app.follow import Listener
from scalestudy.app.result import StudyResult
from scalestudy.app.run_study import reported, run_points
from scalestudy.app.survey import Request, Survey, survey
from scalestudy.config.file import Study
from scalestudy.config.point import Point
from scalestudy.launch.launcher import Options, Overview, PointStatus
from scalestudy.launch.queue.site_profile import billing_unit
from scalestudy.launch.study_status import study_status
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util import units
from scalestudy.util.errors import UserError

EXPECTED = 0.5
"""Median cost, as a share of a grid of three seeds, according to `benchmarks/sequential.py`."""


def run_until(
    request: Request,
    limits: Limits,
    until: Until = "decided",
    *,
    listener: Listener | None = None,
    options: Options | None = None,
    report: bool = True,
) -> StudyResult:
    """Run what a study needs until its decision stands, or a limit is reached, and write its report.

    Until "timed", only timing runs are taken, and times and costs are answered; qualities are not.

    Everything is derived from the run folders, so an interrupted study continues where it was: runs that were
    chosen and have not ended come first. For exceptions see `run_study`.
    """
    listener = listener or Listener()
    plan = survey(request, options, listener=listener)
    sweep = Sweep.of(plan)
    plan.points = chosen = sweep.begun(plan)
    plan.overview = _overview(plan, chosen)
    if plan.todo():
        run_points(plan, listener)
    while True:
        step = next_runs(sweep.known(plan), limits, until)
        if isinstance(step, Ended):
            break
        listener.next_runs(describe_batch(step))
        new = sweep.points_of(step)
        chosen += new
        plan.points, plan.overview = chosen, _overview(plan, new)
        run_points(plan, listener)
    listener.note(ending(step, until, _findings(plan)))
    for status in (*(overview := _overview(plan, chosen)).failed, *overview.damaged):
        listener.failed(status)
    return reported(request, overview, listener, report=report)


def dry_run_until(
    request: Request,
    limits: Limits,
    until: Until = "decided",
    options: Options | None = None,
    *,
    listener: Listener | None = None,
) -> Iterator[str]:
    """Yield texts on the next runs and on the expected cost, without starting or writing anything.

    Raises:
        UserError: Something in the study is wrong.
    """
    plan = survey(request, options, must=False, listener=listener)
    sweep = Sweep.of(plan)
    plan.points = sweep.begun(plan)
    plan.overview = _overview(plan, plan.points)
    known = sweep.known(plan)
    step = next_runs(known, limits, until)
    if isinstance(step, Ended):
        yield ending(step, until, _findings(plan))
        return
    yield f"Next: {describe_batch(step)}"
    yield from (f"  {point.name}" for point in sweep.points_of(step))
    if until == "timed":
        yield "Only timing runs are taken. Qualities are not measured."
    else:
        yield _expected(known, limits, _bill(plan))


UNSETTLED = {
    "single-run": "a row was run only once",
    "interval-contains-target": "its times are too uncertain for the target",
    "faster-may-qualify": "a faster row may keep the target",
    "quality-unclear": "its quality is not settled",
    "quality-unknown": "its quality is not measured",
    "quality-no-reference": "there is no quality to compare with",
    "quality-no-direction": "it is not known which quality is better",
    "quality-no-margin": "the scale of the quality is not known",
    "relative": "no one-worker row is the reference",
    "failures": "runs of a faster row failed",
    "other-models": "runs with the same settings trained other models",
    "unlike-devices": "rows ran on unlike GPUs",
    "times-do-not-fall": "times do not fall with the workers",
    "fails-everywhere": "runs of every row fail",
    "gap": "numbers of workers between two rows were not measured",
    "super-linear": "a speed-up is larger than its workers explain",
    "two-groups-of-times": "the times of a row form two groups",
    "two-groups-of-qualities": "the qualities of a row form two groups",
    "samples-unclear": "it may need more samples for the same quality",
    "faster-may-learn": "a faster row is not shown to learn as well",
}
"""Why a decision is provisional, as clauses."""


def ending(step: Ended, until: Until, findings: Findings | None) -> str:
    """How a study ended, in a sentence: decided only if its report says so, too."""
    if until == "timed":
        return f"{'Timed' if step.decided else 'Not settled'}: {step.why}."
    decision = findings.advice.decision if findings else None
    if not step.decided or decision is None:
        return f"Not decided: {step.why}."
    if decision.choice is None:
        return "Not decided: no row can be advised."
    if reason := _unsettled(decision):
        return f"Not decided: {reason}. More runs would hardly change it within these limits."
    return f"Decided: {step.why}."


def _unsettled(decision: Decision) -> str:
    """Why a decision is provisional, or without any quality; "" if it stands."""
    if decision.provisional:
        return " and ".join(UNSETTLED[reason] for reason in decision.provisional)
    measured = any(
        verdict.kind not in ("unknown", "no-reference")
        for verdict in decision.verdicts.values()
    )
    return "" if measured else UNSETTLED["quality-unknown"]


def describe_batch(step: Batch) -> str:
    """Describe a batch and its reason."""
    noun = "timing run" if step.kind == "timing" else "training"
    return f"{len(step.runs)} {noun}{'s' * (len(step.runs) > 1)}: {step.why}."


def _expected(known: Known, limits: Limits, bill: Bill) -> str:
    """Expected cost with its range, and the saving against the grid."""
    timed = [key for key in known.rows if known.measures.wall_seconds.values.get(key)]
    if len(timed) < len(known.rows):
        return (
            f"In simulations, the median study costs about {EXPECTED:.0%} of a grid of three seeds, and none"
            f" more than a grid of {GRID_SEEDS} seeds. Hours are predicted once every row has been timed."
        )
    grid = sum(map(known.cost, timed)) / 3600
    most = GRID_SEEDS * grid if limits.budget is None else limits.budget / 3600
    spent = known.spent / 3600
    likely = min(most, max(spent, 3 * EXPECTED * grid))
    return (
        f"Expected cost: about {units.cost(likely, bill)} ({units.cost(spent, bill)} so far, at most"
        f" {units.cost(most, bill)}). A grid of three seeds costs {units.cost(3 * grid, bill)}, of which this"
        f" saves {max(0.0, 1 - likely / (3 * grid)):.0%}."
    )


def _overview(plan: Survey, points: list[Point]) -> Overview:
    """The state of these points, of which none may have been run."""
    folder = _folder(plan)
    return study_status(folder).over(points) if folder else Overview([]).over(points)


def _findings(plan: Survey) -> Findings | None:
    """What the study has found so far; None if nothing was run."""
    folder = _folder(plan)
    return read_study(folder, plan=plan.study.plan) if folder else None


def _folder(plan: Survey) -> StudyFolder | None:
    """The folder of the study, if there is one already."""
    target = plan.request.target
    return StudyFolder.open(target) if (target / "study.json").exists() else None


def _bill(plan: Survey) -> Bill:
    """The unit in which the site charges."""
    folder = _folder(plan)
    return (folder and billing_unit(folder)) or "worker"


@dataclass(frozen=True)
class Sweep:
    """The rows of a study, and the points of each row: one for every block, of which there are enough."""

    rows: dict[Key, list[Point]]

    @classmethod
    def of(cls, plan: Survey) -> "Sweep":
        """The sweep of a study, with more seeds than its file names.

        Oversubscribed rows are left out, as their times do not count, and those that the plan has left out.

        Raises:
            UserError: Times of a strategy cannot be compared, or no row is left.
        """
        seeds = _more_seeds(plan.study.sweep.seed, LOOKS[-1])
        sweep = plan.study.sweep.model_copy(update={"seed": seeds})
        points = plan.launcher.points(
            plan.study.model_copy(update={"sweep": sweep}), plan.options
        )
        planned = {_row_of(point) for point in plan.points}
        rows: dict[Key, list[Point]] = {}
        for point in sorted(points, key=lambda point: seeds.index(point.seed)):
            if _row_of(point) in planned:
                _refuse_untimed(point)
                if point.oversubscribed is None:
                    rows.setdefault(_row_of(point), []).append(point)
        if not rows:
            raise UserError(
                "a row whose times count, for --until decided",
                f"only oversubscribed ones: {points[0].oversubscribed}",
                "Sweep fewer workers, or run the grid without --until.",
            )
        return cls({key: rows[key] for key in sorted(rows, key=reading_order)})

    def begun(self, plan: Survey) -> list[Point]:
        """The points of the study that are in its folder already."""
        known = {point.name: point for points in self.rows.values() for point in points}
        known |= {
            timed.name: timed for point in known.values() for timed in (point.timed,)
        }
        found = plan.existing.points() if plan.existing else []
        return [
            known[point.name].model_copy(update={"why": point.why})
            for point in found
            if point.name in known
        ]

    def points_of(self, step: Batch) -> list[Point]:
        """The points of a batch; they say why they are run."""
        points = [self.rows[key][number] for key, number in step.runs]
        points = [point.timed for point in points] if step.kind == "timing" else points
        return [point.model_copy(update={"why": step.why}) for point in points]

    def known(self, plan: Survey) -> Known:
        """What the study has found so far."""
        folder, study, bill = _folder(plan), plan.study, _bill(plan)
        if folder is None:
            return self.found(study, measure_rows(RunsByRow()), [], bill, None)
        overview = study_status(folder)
        findings = read_study(folder, plan=study.plan, overview=overview)
        if any(MODEL in key.swept for key in findings.measures.groups):
            raise UserError(
                "runs of one model for each row, for --until decided",
                f"different models in runs with the same settings of {folder.path}",
                f"See `scalestudy report {folder.path}`.",
            )
        return self.found(study, findings.measures, overview.points, bill, folder)

    def found(
        self,
        study: Study,
        measures: Measures,
        statuses: Sequence[PointStatus],
        bill: Bill,
        folder: StudyFolder | None,
    ) -> Known:
        """What these points have found; those that wait, run or failed count as tried."""
        numbers = {
            point.name: (key, number)
            for key, points in self.rows.items()
            for number, point in enumerate(points)
        }
        timings: dict[Key, set[int]] = {}
        trainings: dict[Key, set[int]] = {}
        units = {
            key: units_of(measures.groups[key], bill)
            if key in measures.groups
            else float(key.workers)
            for key in self.rows
        }
        spent = of_timings = 0.0
        expected = {key: _mean_wall(measures, key) for key in self.rows}
        for status in statuses:
            found = numbers.get(
                status.name.removesuffix("-timing")
                if status.point.timing
                else status.name
            )
            if found is None or status.state == "missing":
                continue
            (timings if status.point.timing else trainings).setdefault(
                found[0], set()
            ).add(found[1])
            if status.result:
                cost = units[found[0]] * (status.result.wall_seconds or 0.0)
                spent += cost
                of_timings += cost if status.point.timing else 0.0
            if folder is not None:
                spent += units[found[0]] * _lost(
                    folder.runs(status.name), expected[found[0]]
                )
        computed = sum(
            units[key] * (run.wall_seconds or 0.0)
            for key, runs in measures.groups.items()
            for run in runs
            if run.is_timing and key in units
        )
        return Known(
            tuple(self.rows),
            measures,
            units,
            timings,
            trainings,
            spent,
            study.plan.efficiency,
            INDIFFERENCE_ZONE,
            study.quality_margin,
            of_timings / computed if computed else 1.0,
        )


def _mean_wall(measures: Measures, key: Key) -> float:
    """Mean time of a training of a row; 0 if none is known."""
    if not measures.wall_seconds.values.get(key):
        return 0.0
    return measures.wall_seconds.mean(key).value or 0.0


def _lost(runs: Sequence[RunFolder], expected: float) -> float:
    """Seconds of runs that ended without a result: as recorded, else those of a training."""
    lost = 0.0
    for run in runs:
        if run.result() is not None or run.failure() is None:
            continue
        starts = [rank.began for rank in run.ranks() if rank.began is not None]
        progress = run.progress()
        # One clock: both times are those of the host of rank 0.
        if starts and progress and progress.updated > starts[0]:
            lost += progress.updated - starts[0]
        else:
            lost += expected
    return lost


def _row_of(point: Point) -> Key:
    return key_of(point.strategy, point.workers, point.swept)


def _more_seeds(seeds: Sequence[int], count: int) -> tuple[int, ...]:
    """The seeds of a study, then the next larger ones, until there are `count`."""
    further = itertools.count(max(seeds) + 1)
    return (*seeds, *itertools.islice(further, max(0, count - len(seeds))))


def _refuse_untimed(point: Point) -> None:
    if not point.traits.has_speed_up:
        why = "take no common steps" if point.traits.timed else "take turns"
        raise UserError(
            "strategies whose times can be compared, for --until decided",
            f'"{point.strategy}", whose workers {why}',
            "Take it out of the sweep, or run the grid without --until.",
        )
