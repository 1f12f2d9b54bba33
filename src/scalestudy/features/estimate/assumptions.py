"""What an estimate rests on, in words: each number with its range and where it is from."""

from collections.abc import Iterator

from scalestudy import units
from scalestudy.features.estimate.fit_link import KnownLink
from scalestudy.features.estimate.network import Network, Path
from scalestudy.features.estimate.one_worker import OneWorker
from scalestudy.features.estimate.times import BACKWARD, Terms
from scalestudy.features.estimate.uncertain import Uncertain
from scalestudy.features.estimate.records import Assumption


def assumptions(worker: OneWorker, path: Path, terms: Terms, network: Network) -> list[Assumption]:
    """Of one strategy."""
    return [
        *_of_worker(worker),
        *_of_links(path),
        *_of_terms(worker, terms, network),
        *_of_rest(worker),
    ]


def _of_worker(worker: OneWorker) -> Iterator[Assumption]:
    runs = f"{worker.runs} run{'s' * (worker.runs > 1)} of one worker"
    epoch = worker.epoch_seconds
    ends = f"{epoch.value:.3g} s ({epoch.low:.3g}–{epoch.high:.3g})"
    yield Assumption(name="one worker's epoch", value=ends, because=f"measured in {runs}", measured=True)
    yield Assumption(
        name="waiting for input",
        value=f"{100 * worker.input_share:.1f} % of it, the same for a sample at any number of workers",
        because=f"measured in {runs}; every worker has a loader of its own", measured=True,
    )  # fmt: skip
    because = (
        "a straight line through steps of several batches"
        if worker.fixed_known
        else "not known from one size of slices: time another batch_size on one worker"
    )
    yield Assumption(
        name="fixed cost of a step", value=f"{_share(worker.fixed_share)} of one worker's step",
        because=because, measured=worker.fixed_known,
    )  # fmt: skip
    yield Assumption(
        name="spread of workers",
        value=f"standard deviation {_share(worker.spread)} of a step, the slowest of n as of normal values",
        because="steps as they were timed" if worker.steps_known else "steps were not timed one by one",
        measured=worker.steps_known,
    )  # fmt: skip
    count = len(worker.bucket_bytes)
    ready = "their multiplications" if worker.bucket_work else "their bytes"
    yield Assumption(
        name="gradients",
        value=f"{units.size(worker.gradient_bytes)} in {count} bucket{'s' * (count != 1)}, ready by {ready}, "
        f"the last layers' first; back-propagation takes {_share(BACKWARD)} of the computing",
        because="as the run recorded them; a layer's backward pass takes about twice its forward pass",
    )  # fmt: skip


def _of_links(path: Path) -> Iterator[Assumption]:
    for name, link in (("between nodes", path.across), ("within a node", path.within)):
        other = "within a node" if name == "between nodes" else "between nodes"
        if link is None:
            yield Assumption(name=name, value=f"as {other}", because="nothing is known of it")
            continue
        yield Assumption(name=name, value=_link(link), because=link.source, measured=link.measured)
    yield Assumption(
        name="all-reduce", value=f"{path.algorithm} ({path.collective})",
        because="; ".join(("what this collective does with large messages", *path.notes)),
    )  # fmt: skip


def _link(link: KnownLink) -> str:
    rate = link.bandwidth
    told = f"{rate.value / 1e9:.3g} GB/s ({rate.low / 1e9:.3g}–{rate.high / 1e9:.3g})"
    unit, length = ("µs", 1e-6) if link.small.value < 1e-3 else ("ms", 1e-3)
    value, low, high = (each / length for each in (link.small.value, link.small.low, link.small.high))
    small = f"{value:.3g} {unit} ({low:.3g}–{high:.3g})"
    if link.ranks == 0:
        return f"{told}, {small} a step"
    told += f"; {small} for the smallest message over {link.ranks} ranks"
    return f"{told}, of which {_share(link.hops)} grows with them"


def _of_terms(worker: OneWorker, terms: Terms, network: Network) -> Iterator[Assumption]:
    if len(worker.bucket_bytes) > 1:
        yield Assumption(
            name="hidden exchange", value=f"{_share(terms.hidden)} of what back-propagation could hide",
            because="on CPUs sums take the workers' own cores; with XLA all gradients come at once",
        )  # fmt: skip
    if terms.contention.high:
        yield Assumption(
            name="contention", value=f"workers of a node slow each other by {_share(terms.contention)}",
            because="not measured: `scalestudy diagnose` does",
        )  # fmt: skip
    storage = "unlimited" if terms.storage is None else f"{terms.storage / 1e9:.3g} GB/s for all nodes"
    yield Assumption(
        name="shared file system", value=storage,
        because="nobody says" if terms.storage is None else "as stated; every sample is read once an epoch",
    )  # fmt: skip
    yield Assumption(
        name="workers of a node", value=str(network.workers_of_a_node),
        because="stated, or as the check had them" if network.per_node or network.measured else "nobody says",
    )  # fmt: skip


def _of_rest(worker: OneWorker) -> Iterator[Assumption]:
    yield Assumption(
        name="start-up", value=f"{units.duration(worker.starting_seconds)}, whatever the number of workers",
        because="measured on one worker, as is by how much a first epoch is longer; thousands that read "
        "their programs from one file system take more",
    )  # fmt: skip
    yield Assumption(
        name="evaluation", value=f"{units.duration(worker.evaluation_seconds)}, shared out over the workers",
        because="measured on one worker",
    )  # fmt: skip


def _share(known: Uncertain) -> str:
    if known.low == known.high:
        return f"{100 * known.value:.1f} %"
    return f"{100 * known.low:.3g} to {100 * known.high:.3g} %"
