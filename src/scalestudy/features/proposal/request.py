"""The request, computed: runs x seeds x hours x charge factor, with what was lost, rounded up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isclose, log10

from scalestudy.features.proposal.hours import epochs_of, hours_of
from scalestudy.features.proposal.panel import Panel
from scalestudy.features.proposal.remedy import Remedy
from scalestudy.features.proposal.subject import Subject
from scalestudy.features.proposal.words import Missing, counted, figure
from scalestudy.report.document import Heading, Items, Paragraph, Table
from scalestudy.study.records import RankRecord


@dataclass(frozen=True)
class Step:
    """One line of the arithmetic: what, how much, and where that comes from."""

    what: str
    value: str
    origin: str


@dataclass(frozen=True)
class Request:
    """What to ask for.

    Attributes:
        steps: The arithmetic, line by line.
        exact: The product, in the panel's unit, before it is rounded.
        total: What to ask for: the same, rounded up.
        unit: The panel's.
        assumed: What was taken for granted, as sentences.
        objection: Why the study does not advise what the user asks for; "" where it does.
    """

    steps: tuple[Step, ...]
    exact: float
    total: float
    unit: str
    assumed: tuple[str, ...]
    objection: str = ""


NOT_ADVISED: dict[str, Remedy] = {
    "uncertain": Remedy("Run it where nothing else computes.", seeds=5),
    "no-timing": Remedy("Run it where each worker has cores or a GPU of its own.", workers=(1, 2, 4)),
    "nothing-learned": Remedy("Train until a run is better than one answer for every sample."),
}
"""What would let the study advise something, by the kind of its decision."""


def request_of(subject: Subject, panel: Panel) -> Request | Missing:
    """Compute a request, or say what it lacks."""
    row, ask = subject.row, subject.ask
    if not subject.advised and ask.workers is None:
        return _not_advised(subject)
    hours, nodes = hours_of(subject, row, ask.epochs), subject.nodes(row)
    if hours is None:
        return Missing("how long a training takes is not known", Remedy(seeds=3))
    if panel.base == "node" and nodes is None:
        return Missing(
            "on how many nodes it ran is not recorded",
            Remedy("Say how many workers a node has: `--per-node N`."),
        )
    base = nodes if panel.base == "node" and nodes is not None else row.workers
    seeds = ask.seeds or row.runs
    charge, unit = ask.charge or panel.charge, ask.unit or panel.unit
    share = subject.work.share if subject.work else None
    single = "node" if panel.base == "node" else "worker"
    useful = ask.runs * seeds * hours * base
    exact = useful * (1 + (share or 0.0)) * charge * (1 + ask.reserve)
    steps = [
        Step("Trainings", f"{ask.runs:,}", "`--runs`"),
        Step("Seeds of each", f"{seeds:,}", "`--seeds`" if ask.seeds else "as in this study"),
        Step("Hours of one", figure(hours), _origin(subject)),
        Step(f"{single.capitalize()}s", f"{base:,}", _base_from(subject, panel)),
        Step(f"{single.capitalize()}-hours", figure(useful), "the product of these"),
    ]
    if share is not None:
        steps.append(Step("Lost work", f"× {1 + share:.3f}", _losses(subject)))
    steps.append(
        Step("Charge factor", f"× {charge:g}", f"{unit} an hour of a {single}" + _charge_from(subject, panel))
    )
    if ask.reserve:
        steps.append(Step("Reserve", f"× {1 + ask.reserve:g}", "`--reserve`"))
    total = rounded_up(exact)
    steps.append(Step(f"{unit}, exactly", figure(exact), "the product of these"))
    steps.append(Step(f"{unit}, asked for", figure(total, 3), "rounded up"))
    return Request(tuple(steps), exact, total, unit, _assumed(subject, share), subject.objection)


def _not_advised(subject: Subject) -> Missing:
    decision = subject.findings.advice.decision
    if decision.choice is not None:
        why = f"the study advises {decision.choice.label}, and {subject.row.strategy} is asked for"
        return Missing(why, Remedy("Name its workers, or no strategy: `--workers N`."))
    why = subject.findings.advice.headline.rstrip(".")
    remedy = NOT_ADVISED.get(decision.kind, Remedy())
    words = f"{remedy.words} To request it all the same, name it: `--workers N`.".lstrip()
    return Missing(f"{why[0].lower()}{why[1:]}", replace(remedy, words=words))


def rounded_up(value: float) -> float:
    """The next number of three significant digits, and a whole one from 100 on. Never below the value."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (floor(log10(value)) - 2)
    steps = value / unit
    # What is such a number already must not be raised by rounding errors.
    whole = round(steps) if isclose(steps, round(steps), rel_tol=1e-12) else ceil(steps)
    return float(f"{whole * unit:.12g}")


def request_blocks(request: Request) -> tuple[Paragraph | Table | Items, ...]:
    """The request for a page: the sum, its arithmetic, and what it assumes."""
    headings = (Heading("Quantity", numeric=False), Heading("Value"), Heading("From", numeric=False))
    rows = tuple((step.what, step.value, step.origin) for step in request.steps)
    doubt = (Paragraph(f"The study does not advise this: {request.objection}."),) * bool(request.objection)
    return (
        Paragraph(f"We request {figure(request.total, 3)} {request.unit}."),
        *doubt,
        Table(headings, rows, "How the request is computed (from unrounded values).", name="request"),
        Items(request.assumed),
    )


def _origin(subject: Subject) -> str:
    epochs, asked = epochs_of(subject, subject.row), subject.ask.epochs
    told = f"mean of {counted(subject.row.runs, 'run')}"
    told += f" of {counted(epochs, 'epoch')}" if epochs else ""
    return told if asked in (None, epochs) else f"{told}, for {counted(asked, 'epoch')}"


def _base_from(subject: Subject, panel: Panel) -> str:
    told = f"{subject.row.key.label}, measured"
    by_hand = panel.base == "node" and subject.ask.per_node and not subject.recorded_nodes(subject.row)
    return f"{told}, at {subject.ask.per_node} on a node (`--per-node`)" if by_hand else told


def _losses(subject: Subject) -> str:
    assert subject.work is not None
    runs = counted(subject.work.attempts, "run")
    return f"measured: {runs} without a result, {figure(subject.work.lost, 3)} worker-hours in all"


def _charge_from(subject: Subject, panel: Panel) -> str:
    return " (`--charge`)" if subject.ask.charge else f" (profile of {panel.panel})"


def _assumed(subject: Subject, share: float | None) -> tuple[str, ...]:
    ask, epochs = subject.ask, epochs_of(subject, subject.row)
    told = [
        "An hour counts from the start of the processes to the result: start-up, compilation, evaluation and"
        " saving are in it, queues and what a job does before are not."
        if subject.row.wall_seconds.value is not None
        else "An hour is one of training alone: start-up and evaluation were not recorded.",
        f"Every training is as large as those measured{_size(subject)}.",
    ]
    ranks = [rank for run in subject.runs(subject.row) for rank in run.ranks]
    if ranks and not any(rank.device_uuids for rank in ranks):
        told.append(f"The runs computed on processors, without GPUs: an hour of a worker is {_cores(ranks)}.")
    if ask.epochs and ask.epochs != epochs:
        told.append(
            "Time grows with epochs as the measured ones' did; what does not repeat in each is counted once."
        )
    if ask.seeds is None and subject.row.runs == 1:
        told.append("One seed: a training that is not repeated has no interval. `--seeds 3` asks for three.")
    if share is None:
        told.append(_unknown_loss(subject))
    elif subject.work is not None and subject.work.restarts:
        told.append(
            f"Finished runs went on from a checkpoint {counted(subject.work.restarts, 'time')}: what they"
            " lost there is not recorded and not counted."
        )
    return tuple(told)


def _cores(ranks: Sequence[RankRecord]) -> str:
    """What an hour of a worker is in core-hours, by the cores that each was granted."""
    granted = {len(rank.cpus) for rank in ranks}
    count = granted.pop() if len(granted) == 1 else 0
    return f"{count} core-hours" if count > 1 else "a core-hour" if count else "one of all its cores"


def _size(subject: Subject) -> str:
    """Samples and global batch of the runs, as far as they are known."""
    samples, batch = subject.runs(subject.row)[0].result.training_samples, subject.row.global_batch
    known = [f"{samples:,} samples"] if samples else []
    known += [f"a global batch of {batch:,}"] if batch else []
    return f": {', '.join(known)}" if known else ""


def _unknown_loss(subject: Subject) -> str:
    if subject.work is not None and subject.work.unknown:
        runs = counted(subject.work.unknown, "run")
        return f"{runs} ended without a result at an unknown time: no loss is counted."
    return "What failed is not known: no loss is counted."
