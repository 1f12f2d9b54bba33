"""Facts on what was run: for the sentences of a statement."""

from scalestudy.analysis.runs import metric_label
from scalestudy.features.proposal.hours import epochs_of
from scalestudy.features.proposal.remedy import Remedy
from scalestudy.features.proposal.subject import Subject
from scalestudy.features.proposal.words import Fact, Missing, counted, listed, measured
from scalestudy.report.environment import environments

_OLD = Remedy("Run the study again with this version: its ranks record where they ran.")
_OURS = Remedy("Run the study with Scalestudy itself.")
_TWO_NODES = Remedy(
    "Run it on two nodes, through a queue.",
    keys=(("launch.on", "slurm"), ("launch.site", "NAME")),
)


def study(subject: Subject) -> Fact:
    """Name of the study."""
    return subject.findings.name


def strategy(subject: Subject) -> Fact:
    """The strategy that is asked for, with other swept values."""
    details = subject.row.key.details
    return subject.row.strategy + (f" ({details})" if details else "")


def workers(subject: Subject) -> Fact:
    """Workers that are asked for: `8 workers`."""
    return counted(subject.row.workers, "worker")


def counts(subject: Subject) -> Fact:
    """Every number of workers that was measured: `1, 2 and 4`."""
    return listed([str(row.workers) for row in subject.rows])


def nodes(subject: Subject) -> Fact:
    """Nodes that those workers took: `2 nodes`."""
    found = subject.nodes(subject.row)
    return (
        Missing("on how many nodes it ran is not recorded", _PER_NODE)
        if found is None
        else counted(found, "node")
    )


_PER_NODE = Remedy("Say how many workers a node has: `--per-node N`.")


def beyond_node(subject: Subject) -> Fact:
    """The most nodes that were measured, where these are two or more: `2 nodes`."""
    known = [found for row in subject.rows if (found := subject.nodes(row)) is not None]
    if not known:
        return Missing("on how many nodes it ran is not recorded", _PER_NODE)
    if max(known) < 2:
        return Missing("all runs stayed on one node", _TWO_NODES)
    return counted(max(known), "node")


def hardware(subject: Subject) -> Fact:
    """Devices, or processors, that the runs computed on."""
    found = dict(environments(subject.findings.runs))
    ranks = [rank for run in subject.findings.runs for rank in run.ranks]
    devices = sorted({name for rank in ranks if rank.device_uuids for name in rank.devices})
    told = ", ".join(devices) or found.get("Processor", "")
    return told or Missing("the hardware is not recorded", _OLD)


def software(subject: Subject) -> Fact:
    """Versions of what computed: `TensorFlow 2.21.0, Keras 3.15.0`."""
    found = dict(environments(subject.findings.runs))
    told = [
        f"{name} {found[name]}" for name in ("TensorFlow", "Keras", "Horovod", "Scalestudy") if name in found
    ]
    return ", ".join(told) or Missing("the versions are not recorded", _OLD)


def runs(subject: Subject) -> Fact:
    """Finished runs behind the table: `24 runs`."""
    return counted(sum(row.runs for row in subject.rows), "run")


def seeds(subject: Subject) -> Fact:
    """Repeats of each point with other seeds: `3 seeds`, `2 to 3 seeds`."""
    least, most = min(row.runs for row in subject.rows), max(row.runs for row in subject.rows)
    return counted(most, "seed") if least == most else f"{least} to {most} seeds"


def repeated(subject: Subject) -> Fact:
    """The same, where every point was repeated, so that intervals are known."""
    if min(row.runs for row in subject.rows) < 2:
        return Missing("a point was run once, so nothing is known of its spread", Remedy(seeds=3))
    return seeds(subject)


def samples(subject: Subject) -> Fact:
    """Training samples: `1,000`."""
    return _whole(subject.runs(subject.row)[0].result.training_samples, "the number of samples")


def same_work(subject: Subject) -> Fact:
    """Samples that every run processed, where that is the same at every number of workers."""
    found = {row.samples_processed for row in subject.rows}
    if len(found) > 1 or None in found:
        return Missing(
            "runs processed different numbers of samples", Remedy("Keep data and epochs the same.")
        )
    return f"{found.pop():,}"


def epochs(subject: Subject) -> Fact:
    """Epochs of a run: `12 epochs`."""
    found = epochs_of(subject, subject.row)
    return counted(found, "epoch") if found else Missing("the number of epochs is not known", _OURS)


def batch(subject: Subject) -> Fact:
    """Samples of an update on the workers that are asked for."""
    return _whole(subject.row.global_batch, "the global batch")


def _whole(value: int | None, what: str) -> Fact:
    return Missing(f"{what} is not known", _OURS) if value is None else f"{value:,}"


def parameters(subject: Subject) -> Fact:
    """Parameters of the model."""
    return _whole(subject.runs(subject.row)[0].result.parameters, "the number of parameters")


def precision(subject: Subject) -> Fact:
    """Arithmetic of the model, as in the study file."""
    told = subject.runs(subject.row)[0].result.precision
    return told or Missing("the arithmetic is not recorded", _OLD)


def quality(subject: Subject) -> Fact:
    """Quality on the workers that are asked for: `IoU 0.951 (95 % interval ...)`."""
    told = measured(subject.row.quality, subject.row.digits)
    metric = metric_label(subject.row.metric)
    return f"{metric} {told}" if told else Missing(f"a run ended without a finite {metric}", Remedy(seeds=3))


def verdict(subject: Subject) -> Fact:
    """How that quality compares with one worker's, where it is settled: `no worse`."""
    found = subject.verdict
    if found.kind in ("no-worse", "worse", "reference"):
        return found.sentence
    return Missing(f"its quality: {found.sentence}", Remedy(workers=(1,), seeds=3))


FACTS = (
    study, strategy, workers, counts, nodes, beyond_node, hardware, software, runs, seeds, repeated, samples,
    same_work, epochs, batch, parameters, precision, quality, verdict,
)  # fmt: skip
