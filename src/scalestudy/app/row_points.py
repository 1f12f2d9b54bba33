"""The rows of a study that runs until it is decided: their points, and what these have found."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.decision import INDIFFERENCE_ZONE
from scalestudy.analysis.findings import read_study
from scalestudy.analysis.measures import Measures, measure_rows
from scalestudy.analysis.next_runs import Batch, Known
from scalestudy.analysis.price import Bill, units_of
from scalestudy.analysis.runs import Key, RunsByRow, key_of
from scalestudy.analysis.runs import order as reading_order
from scalestudy.analysis.same_model import MODEL
from scalestudy.analysis.sequential import LOOKS
from scalestudy.analysis.wording.next_runs import describe_why
from scalestudy.app.plan import Plan
from scalestudy.config.file import Study
from scalestudy.config.point import Point
from scalestudy.launch.launcher import Overview, PointStatus
from scalestudy.launch.queue.site_profile import billing_unit
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class RowPoints:
    """The rows of a study, and the points of each row: one for every block, of which there are enough."""

    rows: dict[Key, list[Point]]

    @classmethod
    def of(cls, plan: Plan) -> "RowPoints":
        """The rows of a study, with more seeds than its file names.

        Oversubscribed rows are left out, as their times do not count, and those that the plan has left out.

        Raises:
            UserError: Times of a strategy cannot be compared, or no row is left.
        """
        # As many as the last look at the data needs: which rows get them is decided as the study runs.
        seeds = _more_seeds(plan.study.sweep.seed, LOOKS[-1])
        sweep = plan.study.sweep.model_copy(update={"seed": seeds})
        study = plan.study.model_copy(update={"sweep": sweep})
        points = plan.launcher.points(study, plan.options)
        planned = {_row_of(point) for point in plan.points}
        rows: dict[Key, list[Point]] = {}
        # One block after another, as the number of a run in its row is that of its block.
        for point in sorted(points, key=lambda point: seeds.index(point.seed)):
            row = _row_of(point)
            if row not in planned:
                continue
            _refuse_untimed(point)
            if point.oversubscribed is None:
                rows.setdefault(row, []).append(point)
        if not rows:
            raise UserError(
                "a row whose times count, for --until decided",
                f"only oversubscribed ones: {points[0].oversubscribed}",
                "Sweep fewer workers, or run the grid without --until.",
            )
        return cls({key: rows[key] for key in sorted(rows, key=reading_order)})

    def begun(self, plan: Plan) -> list[Point]:
        """The points of the study that are in its folder already."""
        if plan.existing is None:
            return []
        by_name: dict[str, Point] = {}
        for points in self.rows.values():
            for point in points:
                by_name[point.name] = point
                by_name[point.timed.name] = point.timed
        begun = []
        for found in plan.existing.points():
            if found.name in by_name:
                known = by_name[found.name]
                begun.append(known.model_copy(update={"why": found.why}))
        return begun

    def points_of(self, step: Batch) -> list[Point]:
        """The points of a batch; they say why they are run."""
        why = describe_why(step.why)
        points = []
        for key, number in step.runs:
            point = self.rows[key][number]
            if step.kind == "timing":
                point = point.timed
            points.append(point.model_copy(update={"why": why}))
        return points

    def known(self, plan: Plan, overview: Overview) -> Known:
        """What the study has found so far; `overview` is the state of all points in its folder.

        Raises:
            UserError: Runs with the same settings trained different models.
        """
        folder, study, bill = plan.results(), plan.study, bill_of(plan)
        if folder is None:
            return self.found(study, measure_rows(RunsByRow()), [], bill, None)
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
        numbers: dict[str, tuple[Key, int]] = {}
        for key, points in self.rows.items():
            for number, point in enumerate(points):
                numbers[point.name] = key, number
        timings: dict[Key, set[int]] = {}
        trainings: dict[Key, set[int]] = {}
        units = self._units(measures, bill)
        expected = {key: _mean_wall(measures, key) for key in self.rows}
        spent = of_timings = 0.0
        for status in statuses:
            timing = status.point.timing
            name, tried = status.name, trainings
            if timing:
                # A timing run has the number of the training that it times.
                name, tried = name.removesuffix("-timing"), timings
            if name not in numbers or status.state == "missing":
                continue
            key, number = numbers[name]
            # Also one that failed, which would else be chosen again for ever.
            tried.setdefault(key, set()).add(number)
            if status.result:
                cost = units[key] * (status.result.wall_seconds or 0.0)
                spent += cost
                if timing:
                    of_timings += cost
            if folder is not None:
                lost = lost_seconds(folder.runs(status.name), status, expected[key])
                spent += units[key] * lost
        computed = _cost_of_timings(measures, units)
        share = 1.0
        if computed:
            share = of_timings / computed
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
            share,
        )

    def _units(self, measures: Measures, bill: Bill) -> dict[Key, float]:
        """Billed units of a run of each row; its workers where no run has shown them yet."""
        units = {}
        for key in self.rows:
            if key in measures.groups:
                units[key] = units_of(measures.groups[key], bill)
            else:
                units[key] = float(key.workers)
        return units


def bill_of(plan: Plan) -> Bill:
    """The unit in which the site charges."""
    folder = plan.results()
    if folder is None:
        return "worker"
    return billing_unit(folder) or "worker"


def _cost_of_timings(measures: Measures, units: dict[Key, float]) -> float:
    """Unit-seconds of the timing runs, as measured by the runs themselves."""
    cost = 0.0
    for key, runs in measures.groups.items():
        if key not in units:
            continue
        for run in runs:
            if run.is_timing:
                cost += units[key] * (run.wall_seconds or 0.0)
    return cost


def _mean_wall(measures: Measures, key: Key) -> float:
    """Mean time of a training of a row; 0 if none is known."""
    if not measures.wall_seconds.values.get(key):
        return 0.0
    return measures.wall_seconds.mean(key).value or 0.0


def lost_seconds(
    runs: Sequence[RunFolder],
    status: PointStatus,
    expected: float,
) -> float:
    """Seconds of runs that ended without a result: as recorded, else those of a training."""
    lost = 0.0
    for run in runs:
        if run.result() is not None:
            continue
        if run == status.run:
            # A dry run records neither an end that only the queue knows, nor that a job is back.
            failure = status.failure
        else:
            failure = run.failure()
        if failure is None:
            continue
        # A failure says no time; the ranks and the progress do, if it came that far.
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
        why = "take turns"
        if point.traits.timed:
            why = "take no common steps"
        raise UserError(
            "strategies whose times can be compared, for --until decided",
            f'"{point.strategy}", whose workers {why}',
            "Take it out of the sweep, or run the grid without --until.",
        )
