"""A review panel's profile, and the request for resources in its unit.

A profile is a Jinja template of the page with a TOML header, which users can edit. A request is runs x seeds
x hours x charge factor x reserve, rounded up.
"""

import re
from collections.abc import Iterator
from datetime import date
from importlib.resources import files
from math import ceil, floor, isclose, log10
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scalestudy.config.toml_text import read_text, toml_table
from scalestudy.features.proposal.facts import NODES
from scalestudy.features.proposal.missing import Missing
from scalestudy.features.proposal.subject import ProposalSubject, count_runs
from scalestudy.report.document import Block, Items, Paragraph, Table, headings_of
from scalestudy.report.number_format import significant
from scalestudy.store.record_file import first_error
from scalestudy.util.errors import UserError
from scalestudy.util.text import count_noun

HEAD = "+++\n"
ENDING = ".md.j2"
ASKED = re.compile(r"\{#\s*(.*?)\s*#\}\s*", re.DOTALL)
Text = Annotated[str, Field(min_length=1)]


class PanelSource(BaseModel):
    """A page or document of the panel: its address, when it was read, and its requirements in a sentence."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: Text
    read: date
    says: str = ""


class Panel(BaseModel):
    """A panel's profile."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )

    panel: Text
    """Who asks: "ARCHER2 technical assessment"."""
    title: Text
    """Title of the page."""
    unit: Text
    """Unit of the request: "CU", "GPU-h", "node-hours"."""
    base: Literal["device", "node"] = "device"
    """What hours are counted for: each worker's device, or whole nodes."""
    charge: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Units charged for an hour of the base; `--charge` overrides it."""
    sources: Annotated[tuple[PanelSource, ...], Field(min_length=1)]
    assumed: tuple[str, ...] = ()
    """Assumptions of this profile that the sources do not state."""
    body: Text
    """Template: titles and parts, separated by empty lines."""

    def sections(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield each section's title and parts: the panel's question, and the template of the answer."""
        for section in re.split(r"^## ", self.body, flags=re.MULTILINE)[1:]:
            title, _, text = section.partition("\n")
            parts = []
            for block in re.split(r"\n\s*\n", text):
                part = block.strip()
                if not part:
                    continue
                asked = ASKED.match(part)
                if asked:
                    parts.append((asked[1], part[asked.end() :]))
                else:
                    parts.append((title, part))
            yield title.strip(), parts


def shipped_panels() -> dict[str, str]:
    """Return the texts of the panel files in this package, by name."""
    folder = files("scalestudy.features.proposal") / "panels"
    texts = {}
    for file in folder.iterdir():
        texts[file.name.removesuffix(ENDING)] = file.read_text()
    return dict(sorted(texts.items()))


def find_panel(name: str) -> Panel:
    """Return the panel with this name, or in this file if `name` has a slash or ends in .j2.

    Raises:
        UserError: There is no such panel, or it is invalid.
    """
    if name.endswith(".j2") or "/" in name:
        path = Path(name).expanduser()
        return parse_panel(read_text(path), path.name)
    shipped = shipped_panels()
    if name not in shipped:
        action = (
            f"Choose one with --panel, or name your own file: --panel ./mine{ENDING}."
        )
        raise UserError(f"one of the panels {', '.join(shipped)}", f"{name!r}", action)
    return parse_panel(shipped[name], f"{name}{ENDING}")


def parse_panel(text: str, file: str) -> Panel:
    """Parse the text of a panel file; `file` is its name, for messages.

    Raises:
        UserError: The panel is invalid.
    """

    def refused(why: str) -> UserError:
        action = "`scalestudy docs reference/panels` explains its parts."
        return UserError("a valid panel file", f"{file}: {why}", action)

    parts = text.split(HEAD)
    if len(parts) != 3 or parts[0].strip():
        raise refused("it does not begin with a head between two lines of +++")
    try:
        return Panel.model_validate(toml_table(parts[1], file) | {"body": parts[2]})
    except ValidationError as error:
        raise refused(first_error(error)) from None


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
    row, options = subject.row, subject.options
    if not subject.advised and options.workers is None:
        return _not_advised(subject)
    hours, nodes = subject.hours(row), subject.nodes(row)
    if panel.base == "node":
        base, single = nodes, "node"
    else:
        base, single = row.workers, "worker"
    if base is None:
        return NODES
    charge, measured = options.charge or panel.charge, subject.epochs(row)
    seeds, seeds_from = _seeds(subject)
    unit, cores = _unit(subject, panel)
    useful = options.runs * seeds * hours * base * cores
    exact = useful * charge * (1 + options.reserve)
    total = round_up(exact)
    origin = f"mean of {count_noun(row.runs, 'run')} of {count_noun(measured, 'epoch')}"
    if row.timings:
        origin = f"mean of {count_runs([row])}, for {count_noun(measured, 'epoch')}"
    planned = subject.planned
    if planned.epochs not in (None, measured):
        origin += f", for {count_noun(planned.epochs, 'epoch')}"
    if planned.samples is not None:
        origin += f" of {planned.samples:,} samples"
    steps = [
        ("Trainings", f"{options.runs:,}", "`--runs`"),
        ("Seeds of each", f"{seeds:,}", seeds_from),
        ("Hours of one", significant(hours), origin),
        (f"{single.capitalize()}s", f"{base:,}", f"{row.key.label}, measured"),
    ]
    hours_of = f"{single.capitalize()}-hours"
    if cores > 1:
        steps.append(("Cores of a worker", f"{cores}", "granted to every rank"))
        hours_of = "Core-hours"
    charged = "`--charge`" if options.charge else f"profile of {panel.panel}"
    an_hour = f"{unit} an hour of a {single} ({charged})"
    steps.append((hours_of, significant(useful), "the product of these"))
    steps.append(("Charge factor", f"× {charge:g}", an_hour))
    if options.reserve:
        steps.append(("Reserve", f"× {1 + options.reserve:g}", "`--reserve`"))
    steps.append((f"{unit}, exactly", significant(exact), "the product of these"))
    steps.append((f"{unit}, asked for", significant(total, 3), "rounded up"))
    assumed, doubt = _assumed(subject), _doubt(subject)
    return ResourceRequest(tuple(steps), exact, total, unit, assumed, doubt)


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
    objection, doubt = subject.objection, subject.doubt
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
    ranks = subject.ranks(subject.row)
    if not ranks or any(rank.device_uuids for rank in ranks):
        return panel.unit, 1
    granted = {len(rank.cpus) for rank in ranks}
    if len(granted) != 1:
        return panel.unit, 1
    # Ranks of records without a list of CPUs count as one core each.
    return "core-h", max(1, granted.pop())


def _not_advised(subject: ProposalSubject) -> Missing:
    advice, choice = subject.findings.advice, subject.findings.advice.decision.choice
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
    batch = f", a global batch of {row.global_batch:,}" if row.global_batch else ""
    sentences = [
        "An hour counts from the start of the processes to the result: start-up, compilation, evaluation and"
        " saving are in it, queues and what a job does before are not.",
        f"Every training has {samples:,} samples{batch}.",
    ]
    ranks = subject.ranks(row)
    if ranks and not any(rank.device_uuids for rank in ranks):
        granted = {len(rank.cpus) for rank in ranks}
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
