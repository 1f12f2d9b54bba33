"""Run a study until it is decided: after each batch of runs, its findings name the next."""

from collections.abc import Iterator

from scalestudy.analysis.decision import Decision
from scalestudy.analysis.findings import Findings, read_study
from scalestudy.analysis.next_runs import (
    GRID_SEEDS,
    Batch,
    Ended,
    Known,
    Limits,
    Until,
    next_runs,
)
from scalestudy.analysis.price import Bill
from scalestudy.analysis.wording.next_runs import describe_why
from scalestudy.app.follow import Listener
from scalestudy.app.plan import Plan, Request, plan_study
from scalestudy.app.result import StudyResult
from scalestudy.app.row_points import RowPoints, bill_of
from scalestudy.app.run_study import reported, run_points
from scalestudy.config.point import Point
from scalestudy.launch.launcher import Options, Overview
from scalestudy.launch.study_status import study_status
from scalestudy.util import units
from scalestudy.util.text import count_noun

EXPECTED = 0.5
"""Median cost, as a share of a grid of three seeds, according to `benchmarks/sequential.py`."""
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
    plan = plan_study(request, options, listener=listener)
    rows = RowPoints.of(plan)
    chosen = rows.begun(plan)
    plan = plan.with_points(chosen, _overview(plan, chosen))
    if plan.todo():
        run_points(plan, listener)
    while True:
        overview = _overview_of_all(plan)
        step = next_runs(rows.known(plan, overview), limits, until)
        if isinstance(step, Ended):
            break
        listener.next_runs(describe_batch(step))
        new = rows.points_of(step)
        chosen = [*chosen, *new]
        # The folder holds all points that were chosen; only the new ones are to be run.
        plan = plan.with_points(chosen, _overview(plan, new))
        run_points(plan, listener)
    listener.note(ending(step, until, _findings(plan, overview)))
    overview = overview.over(chosen)
    for status in (*overview.failed, *overview.damaged):
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
    plan = plan_study(request, options, dry=True, listener=listener)
    rows = RowPoints.of(plan)
    # Read once: a dry run changes nothing in between, and records nothing.
    overview = Overview([])
    if plan.existing is not None:
        overview = study_status(plan.existing, record=False)
    known = rows.known(plan, overview)
    step = next_runs(known, limits, until)
    if isinstance(step, Ended):
        yield ending(step, until, _findings(plan, overview))
        return
    yield f"Next: {describe_batch(step)}"
    for point in rows.points_of(step):
        yield f"  {point.name}"
    if until == "timed":
        yield "Only timing runs are taken. Qualities are not measured."
    else:
        yield _expected(known, limits, bill_of(plan))


def ending(step: Ended, until: Until, findings: Findings | None) -> str:
    """How a study ended, in a sentence: decided only if its report says so, too."""
    if until == "timed":
        start = "Timed" if step.decided else "Not settled"
        return f"{start}: {describe_why(step.why)}."
    if not step.decided or findings is None:
        return f"Not decided: {describe_why(step.why)}."
    decision = findings.advice.decision
    if decision.choice is None:
        return "Not decided: no row can be advised."
    reason = _unsettled(decision)
    # The report is the measure: its verdicts may be stricter than the rule that ended the runs.
    if reason:
        return f"Not decided: {reason}. More runs would hardly change it within these limits."
    return f"Decided: {describe_why(step.why)}."


def _unsettled(decision: Decision) -> str:
    """Why a decision is provisional, or without any quality; "" if it stands."""
    if decision.provisional:
        return " and ".join([UNSETTLED[reason] for reason in decision.provisional])
    # A decision on times alone may stand, and still say nothing of the models.
    kinds = {verdict.kind for verdict in decision.verdicts.values()}
    if kinds <= {"unknown", "no-reference"}:
        return UNSETTLED["quality-unknown"]
    return ""


def describe_batch(step: Batch) -> str:
    """Describe a batch and its reason."""
    noun = "timing run" if step.kind == "timing" else "training"
    return f"{count_noun(len(step.runs), noun)}: {describe_why(step.why)}."


def _expected(known: Known, limits: Limits, bill: Bill) -> str:
    """Expected cost with its range, and the saving against the grid."""
    seconds = known.measures.wall_seconds.values
    timed = [key for key in known.rows if seconds.get(key)]
    if len(timed) < len(known.rows):
        return (
            f"In simulations, the median study costs about {EXPECTED:.0%} of a grid of three seeds, and none"
            f" more than a grid of {GRID_SEEDS} seeds. Hours are predicted once every row has been timed."
        )
    grid = sum(map(known.cost, timed)) / 3600
    most = GRID_SEEDS * grid
    if limits.budget is not None:
        most = limits.budget / 3600
    spent = known.spent / 3600
    three_seeds = 3 * grid
    likely = min(most, max(spent, EXPECTED * three_seeds))
    saved = max(0.0, 1 - likely / three_seeds)
    return (
        f"Expected cost: about {units.cost(likely, bill)} ({units.cost(spent, bill)} so far, at most"
        f" {units.cost(most, bill)}). A grid of three seeds costs {units.cost(three_seeds, bill)}, of which this"
        f" saves {saved:.0%}."
    )


def _overview(plan: Plan, points: list[Point]) -> Overview:
    """The state of these points, of which none may have been run."""
    return _overview_of_all(plan).over(points)


def _overview_of_all(plan: Plan) -> Overview:
    """The state of all points in the folder of the study, which may not exist yet."""
    folder = plan.results()
    if folder is None:
        return Overview([])
    return study_status(folder)


def _findings(plan: Plan, overview: Overview) -> Findings | None:
    """What the study has found so far; None if nothing was run."""
    folder = plan.results()
    if folder is None:
        return None
    return read_study(folder, plan=plan.study.plan, overview=overview)
