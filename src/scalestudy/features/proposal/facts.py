"""Facts of a proposal, by the name that panels use: text for a sentence, or why it is missing."""

from collections.abc import Callable

from scalestudy.analysis.runs import metric_label
from scalestudy.analysis.wording.scaling_model import describe_fit, model_sentences
from scalestudy.analysis.wording.verdicts import describe_verdict
from scalestudy.config.point import REPEATS
from scalestudy.features.proposal.missing import (
    AGAIN,
    BASELINE,
    CURVE,
    MORE,
    REPEATED,
    Missing,
)
from scalestudy.features.proposal.subject import ProposalSubject, count_runs
from scalestudy.features.proposal.table_columns import COLUMNS
from scalestudy.plugins.engines import package_labels
from scalestudy.report.notes import environments
from scalestudy.report.number_format import decimals, format_number, with_ends
from scalestudy.util import units
from scalestudy.util.text import count_noun, join_words

Fact = str | Missing

NODES = Missing("the number of nodes is not recorded", AGAIN)


def _quantity(name: str) -> Callable[[ProposalSubject], Fact]:
    """Return the fact of a column for the requested row."""
    column = COLUMNS[name]

    def fact(subject: ProposalSubject) -> Fact:
        # Its speed-up against itself is 1 by definition.
        if column.remedy is BASELINE and subject.row.is_baseline:
            why = "the requested row is itself the baseline of the speed-up"
            if subject.row.workers == 1:
                return Missing(why, MORE)
            return Missing(why, f"{BASELINE} {MORE}")
        estimate = column.estimate(subject, subject.row)
        digits = column.digits
        if digits is None:
            digits = decimals([estimate.value or 0.0])
        text = with_ends(estimate, digits)
        if text:
            return text
        return Missing(f"no value for {column.title}", column.remedy)

    return fact


def _beyond_node(subject: ProposalSubject) -> Fact:
    # Panels ask for scaling beyond one node, such as ARCHIE-WeSt's.
    most = 0
    for row in subject.rows:
        most = max(most, subject.nodes(row) or 0)
    if most > 1:
        return count_noun(most, "node")
    if most:
        return Missing(
            "all runs stayed on one node",
            "Run it on two nodes, through a queue.",
        )
    return NODES


def _hardware(subject: ProposalSubject) -> Fact:
    gpus: set[str] = set()
    for run in subject.findings.runs:
        for rank in run.ranks:
            # Only GPUs have UUIDs; without any, the processor is named below.
            if rank.device_uuids:
                gpus.update(rank.devices)
    text = ", ".join(sorted(gpus))
    if text:
        return text
    recorded = dict(environments(subject.findings.runs))
    return recorded.get("Processor") or Missing("the hardware is not recorded", AGAIN)


def _software(subject: ProposalSubject) -> Fact:
    recorded = dict(environments(subject.findings.runs))
    # Several packages may have one label, such as "tensorflow" and "tensorflow-cpu".
    names = dict.fromkeys((*package_labels().values(), "Scalestudy"))
    versions = []
    for name in names:
        if name in recorded:
            versions.append(f"{name} {recorded[name]}")
    if not versions:
        return Missing("the versions are not recorded", AGAIN)
    return ", ".join(versions)


def _repeated(subject: ProposalSubject) -> Fact:
    runs = [row.runs for row in subject.rows]
    least = min(runs)
    most = max(runs)
    if least < 2:
        return Missing("a point was run only once, so its spread is unknown", REPEATED)
    if any(row.timings for row in subject.rows):
        if least < most:
            return f"{least} to {most} repeats, timing runs among them"
        return f"{most} repeats"
    repeats = "seeds"
    for run in subject.findings.runs:
        if run.result.swept.keys() & REPEATS:
            repeats = "repeats (seeds and splits)"
    if least == most:
        return f"{most} {repeats}"
    return f"{least} to {most} {repeats}"


def _same_work(subject: ProposalSubject) -> Fact:
    samples = {row.samples_processed for row in subject.rows}
    if len(samples) > 1 or None in samples:
        return Missing(
            "runs processed different numbers of samples",
            "Keep data and epochs the same.",
        )
    return f"{samples.pop():,}"


def _quality(subject: ProposalSubject) -> Fact:
    text = with_ends(subject.row.quality, subject.row.digits)
    metric = metric_label(subject.row.metric)
    other = subject.row.quality_of
    if text and other:
        return f"{metric} {text} (measured on {other.label}, whose updates are equal)"
    if text:
        return f"{metric} {text}"
    return Missing(f"a run ended without a finite {metric}", REPEATED)


def _verdict(subject: ProposalSubject) -> Fact:
    verdict = subject.verdict
    # The reference itself has been compared with nothing.
    if verdict.kind == "reference" or not verdict.reference:
        return describe_verdict(verdict)
    return f"{describe_verdict(verdict)} (against {verdict.reference.label})"


def _precision(subject: ProposalSubject) -> Fact:
    precision = subject.runs(subject.row)[0].precision
    return precision or Missing("the precision is not recorded", AGAIN)


def _epoch_time(subject: ProposalSubject) -> Fact:
    training = subject.row.training_seconds.value or 0.0
    seconds = training / subject.epochs(subject.row)
    return f"{format_number(seconds, decimals([seconds]))} s"


def _limits(subject: ProposalSubject) -> Fact:
    keys = {row.key for row in subject.rows}
    reason = ""
    for model in subject.findings.models:
        if model.series.key not in keys:
            continue
        if model.fit:
            fit = describe_fit(model, model.series.key.strategy)
            return " ".join((fit, *model_sentences(model)))
        reason = model.reason
        break
    return Missing(reason or "no scaling model can be fitted", CURVE)


def _batch_rule(subject: ProposalSubject) -> Fact:
    sizes = set()
    shares = set()
    for row in subject.rows:
        sizes.add(row.global_batch)
        shares.add(subject.runs(row)[0].per_worker_batch)
    if len(sizes) == 1 and None not in sizes:
        return "the same global batch, so that every update is the same"
    if len(shares) == 1 and None not in shares:
        return "the same batch on each worker, so that the global batch grows with the workers"
    return Missing(
        "neither the global batch nor the per-worker batch is constant",
        CURVE,
    )


def _strategy(subject: ProposalSubject) -> Fact:
    key = subject.row.key
    if not key.details:
        return subject.row.strategy
    return f"{subject.row.strategy} ({key.details})"


def _nodes(subject: ProposalSubject) -> Fact:
    nodes = subject.nodes(subject.row)
    if not nodes:
        return NODES
    return count_noun(nodes, "node")


def _counts(subject: ProposalSubject) -> Fact:
    return join_words([str(row.workers) for row in subject.rows])


FACTS: dict[str, Callable[[ProposalSubject], Fact]] = {
    name: _quantity(name) for name in COLUMNS
} | {
    "strategy": _strategy,
    "workers": lambda s: count_noun(s.row.workers, "worker"),
    "counts": _counts,
    "nodes": _nodes,
    "beyond_node": _beyond_node,
    "hardware": _hardware,
    "software": _software,
    "runs": lambda s: count_runs(s.rows),
    "repeated": _repeated,
    "samples": lambda s: f"{s.runs(s.row)[0].training_samples:,}",
    "same_work": _same_work,
    "epochs": lambda s: count_noun(s.epochs(s.row), "epoch"),
    "parameters": lambda s: f"{s.runs(s.row)[0].parameters:,}",
    "precision": _precision,
    "quality": _quality,
    "verdict": _verdict,
    "training_time": lambda s: units.duration(s.row.training_seconds.value or 0.0),
    "epoch_time": _epoch_time,
    "start_up": lambda s: units.duration(s.fixed_seconds(s.row)),
    "against": lambda s: count_noun(s.row.speed.against, "worker"),
    "limits": _limits,
    "batch_rule": _batch_rule,
}
"""Facts by the name that panels use."""
