"""The request for resources in a panel's unit: runs x seeds x hours x charge factor x reserve, rounded up."""

from math import ceil, floor, isclose, log10
from typing import NamedTuple

from scalestudy.features.proposal.facts import NODES
from scalestudy.features.proposal.missing import Missing
from scalestudy.features.proposal.panel import Panel
from scalestudy.features.proposal.subject import ProposalSubject, count_runs
from scalestudy.report.document import Block, Items, Paragraph, Table, headings_of
from scalestudy.report.number_format import significant
from scalestudy.util.text import count_noun


class ResourceRequest(NamedTuple):
    """A resource request.

    Attributes:
        steps: Steps of the arithmetic: quantity, value and source.
        exact: Exact product, in `unit`.
        total: Amount to request: `exact`, rounded up.
        unit: Unit of the panel or of the user's options.
        assumed: Assumptions, as sentences.
        doubt: Why the study does not advise the requested row, or not yet; "" if it does.
    """

    steps: tuple[tuple[str, str, str], ...]
    exact: float
    total: float
    unit: str
    assumed: tuple[str, ...]
    doubt: str


def resource_request(
    subject: ProposalSubject, panel: Panel
) -> ResourceRequest | Missing:
    """Compute a request, or return what is missing for it."""
    row = subject.row
    options = subject.options
    # Only what the study advises, or the user names: a page would otherwise ask for the fastest row.
    if not subject.advised and options.workers is None:
        return _not_advised(subject)
    hours = subject.hours(row)
    base: int | None = row.workers
    single = "worker"
    # Sites that count nodes charge them whole, however few of their devices compute.
    if panel.base == "node":
        base = subject.nodes(row)
        single = "node"
    if base is None:
        return NODES
    # Sites charge for other devices than those of the panel's profile: the user's factor counts.
    charge = options.charge or panel.charge
    seeds, seeds_from = _seeds(subject)
    unit, cores = _unit(subject, panel)
    useful = options.runs * seeds * hours * base * cores
    exact = useful * charge * (1 + options.reserve)
    total = round_up(exact)
    steps = [
        ("Trainings", f"{options.runs:,}", "`--runs`"),
        ("Seeds of each", f"{seeds:,}", seeds_from),
        ("Hours of one", significant(hours), _origin_of_hours(subject)),
        (f"{single.capitalize()}s", f"{base:,}", f"{row.key.label}, measured"),
    ]
    hours_of = f"{single.capitalize()}-hours"
    if cores > 1:
        steps.append(("Cores of a worker", f"{cores}", "granted to every rank"))
        hours_of = "Core-hours"
    charged = f"profile of {panel.panel}"
    if options.charge:
        charged = "`--charge`"
    an_hour = f"{unit} an hour of a {single} ({charged})"
    steps.append((hours_of, significant(useful), "the product of these"))
    steps.append(("Charge factor", f"× {charge:g}", an_hour))
    if options.reserve:
        steps.append(("Reserve", f"× {1 + options.reserve:g}", "`--reserve`"))
    steps.append((f"{unit}, exactly", significant(exact), "the product of these"))
    steps.append((f"{unit}, asked for", significant(total, 3), "rounded up"))
    return ResourceRequest(
        tuple(steps),
        exact,
        total,
        unit,
        _assumed(subject),
        _doubt(subject),
    )


def _origin_of_hours(subject: ProposalSubject) -> str:
    """Return which runs the hours of a training are from, and for which length they were computed."""
    row = subject.row
    measured = subject.epochs(row)
    origin = f"mean of {count_noun(row.runs, 'run')} of {count_noun(measured, 'epoch')}"
    if row.timings:
        origin = f"mean of {count_runs([row])}, for {count_noun(measured, 'epoch')}"
    planned = subject.planned
    if planned.epochs not in (None, measured):
        origin += f", for {count_noun(planned.epochs, 'epoch')}"
    if planned.samples is not None:
        origin += f" of {planned.samples:,} samples"
    return origin


def _seeds(subject: ProposalSubject) -> tuple[int, str]:
    """Return how many seeds each training is to have, and where that number is from."""
    if subject.options.seeds:
        return subject.options.seeds, "`--seeds`"
    # A row whose quality was settled with few trainings says nothing about how many seeds are wanted.
    if subject.row.timings:
        return 1, "`--seeds`, default"
    return subject.row.runs, "as in this study"


def _doubt(subject: ProposalSubject) -> str:
    """Return why the study does not advise the request, or not yet; "" if it does."""
    objection = subject.objection
    doubt = subject.doubt
    if objection:
        return f"The study does not advise this: {objection}."
    if doubt:
        return f"The study's advice is not settled: {doubt}"
    return ""


def _unit(subject: ProposalSubject, panel: Panel) -> tuple[str, int]:
    """The unit of the request, and cores of a worker to multiply by.

    What ran on processors is not requested in GPU-hours: then cores are, if every worker had as many.
    """
    if subject.options.unit or "GPU" not in panel.unit:
        return subject.options.unit or panel.unit, 1
    granted = _cores_of_ranks(subject)
    if len(granted) != 1:
        return panel.unit, 1
    # Ranks of records without a list of CPUs count as one core each.
    return "core-h", max(1, granted.pop())


def _cores_of_ranks(subject: ProposalSubject) -> set[int]:
    """Return the numbers of cores that ranks were granted; empty if they computed on GPUs, or are unknown."""
    granted = set()
    for rank in subject.ranks(subject.row):
        # Only GPUs have UUIDs.
        if rank.device_uuids:
            return set()
        granted.add(len(rank.cpus))
    return granted


def _not_advised(subject: ProposalSubject) -> Missing:
    advice = subject.findings.advice
    choice = advice.decision.choice
    if choice is not None:
        why = (
            f"the study advises {choice.label}, and {subject.row.strategy} is asked for"
        )
        return Missing(why, "Name its workers, or no strategy: `--workers N`.")
    why = advice.headline.rstrip(".")
    return Missing(
        f"{why[0].lower()}{why[1:]}",
        "To request it all the same, name it: `--workers N`.",
    )


def round_up(value: float) -> float:
    """Round up to three significant digits. The result is a whole number from 100 on."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (floor(log10(value)) - 2)
    steps = value / unit
    # Rounding errors must not raise a value that already has three significant digits.
    if isclose(steps, round(steps), rel_tol=1e-12):
        whole = round(steps)
    else:
        whole = ceil(steps)
    return float(f"{whole * unit:.12g}")


def request_blocks(request: ResourceRequest) -> tuple[Block, ...]:
    """Return the request for a page: the total, its arithmetic and its assumptions."""
    headings = headings_of("Quantity:", "Value", "From:")
    caption = "How the request is computed (from unrounded values)."
    total = f"{significant(request.total, 3)} {request.unit}"
    blocks: list[Block] = [Paragraph(f"We request {total}.")]
    if request.doubt:
        blocks.append(Paragraph(request.doubt))
    blocks.append(Table(headings, request.steps, caption, name="request"))
    blocks.append(Items(request.assumed))
    return tuple(blocks)


def _assumed(subject: ProposalSubject) -> tuple[str, ...]:
    row = subject.row
    samples = subject.planned.samples or subject.runs(row)[0].training_samples
    batch = ""
    if row.global_batch:
        batch = f", a global batch of {row.global_batch:,}"
    sentences = [
        "An hour counts from the start of the processes to the result: start-up, compilation, evaluation and"
        " saving are in it, queues and what a job does before are not.",
        f"Every training has {samples:,} samples{batch}.",
    ]
    granted = _cores_of_ranks(subject)
    if granted:
        hour = "one of all its cores"
        if granted == {1}:
            hour = "a core-hour"
        elif len(granted) == 1 and granted != {0}:
            hour = f"{granted.pop()} core-hours"
        sentences.append(
            f"The runs computed on processors, without GPUs: an hour of a worker is {hour}."
        )
    if not subject.planned.as_measured:
        sentences.append(
            "Steps, input and evaluations take as long in every epoch as in the measured ones; start-up,"
            " compilation and saving are counted once."
        )
    return tuple(sentences)
