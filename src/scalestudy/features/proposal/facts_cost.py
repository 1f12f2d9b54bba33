"""Facts on what a training costs, and on what was lost: for the sentences of a statement."""

from statistics import median

from scalestudy.features.proposal.hours import hours_of
from scalestudy.features.proposal.remedy import Remedy
from scalestudy.features.proposal.subject import Subject
from scalestudy.features.proposal.use import memory_percent_of, watts_of
from scalestudy.features.proposal.words import Fact, Missing, counted, figure
from scalestudy.util import units

_GPUS = Remedy("Run the study on GPUs whose driver tells it (NVML).")
_AGAIN = Remedy("Run the study again with this version.")
_FOLDER = Remedy("Name a folder of results that Scalestudy made: other files do not tell of failed runs.")


def device_hours(subject: Subject) -> Fact:
    """Workers times hours of one run, from its start to its result."""
    found = hours_of(subject, subject.row)
    return Missing("no time is known", _AGAIN) if found is None else figure(subject.row.workers * found, 3)


def energy_wh(subject: Subject) -> Fact:
    """Wh that all drew in one training whose energy could be counted: `18.7 Wh (gpus)`."""
    found, of = subject.row.costs.watt_hours, subject.row.costs.energy_of
    return Missing("no energy was recorded", _GPUS) if found is None else f"{figure(found, 3)} Wh ({of})"


def watts(subject: Subject) -> Fact:
    """Mean power of all GPUs of a run together, in W."""
    found = watts_of(subject.runs(subject.row))
    return Missing("no power of GPUs was recorded", _GPUS) if found is None else f"{figure(found, 3)} W"


def sm_percent(subject: Subject) -> Fact:
    """Mean share of time in which a kernel ran on the GPUs, in per cent."""
    found = subject.row.costs.gpu_percent
    return Missing("no utilisation of GPUs was recorded", _GPUS) if found is None else f"{found:.0f} %"


def memory_percent(subject: Subject) -> Fact:
    """Mean share of time in which the GPUs' memory was read or written, in per cent."""
    found = memory_percent_of(subject.runs(subject.row))
    return Missing("no use of GPUs' memory was recorded", _GPUS) if found is None else f"{found:.0f} %"


def gpu_memory(subject: Subject) -> Fact:
    """The most memory that was given to tensors on a GPU."""
    found = subject.row.costs.gpu_memory_bytes
    return Missing("no memory of GPUs was recorded", _GPUS) if found is None else units.size(found)


def host_memory(subject: Subject) -> Fact:
    """The most memory that a process of the run held."""
    found = subject.row.costs.peak_memory_bytes
    return Missing("no memory was recorded", _AGAIN) if found is None else units.size(found)


def mfu(subject: Subject) -> Fact:
    """Share of the devices' peak that the training reached, in per cent."""
    found = subject.row.costs.mfu
    if found is None:
        return Missing(
            "the share of the devices' peak is not known", Remedy("Run it on devices whose peak is known.")
        )
    return f"{100 * found:.1f} %"


def lost_share(subject: Subject) -> Fact:
    """Worker-hours of runs without a result for each finished worker-hour, in per cent."""
    if subject.work is None:
        return Missing("what failed is not known of numbers taken elsewhere", _FOLDER)
    if subject.work.unknown:
        runs = counted(subject.work.unknown, "run")
        return Missing(f"{runs} ended without a result, and without a sign of when", _FOLDER)
    share = subject.work.share
    return Missing("no run has finished", Remedy(seeds=3)) if share is None else f"{100 * share:.1f} %"


def lost_runs(subject: Subject) -> Fact:
    """How many runs ended without a result: `2 runs`."""
    if subject.work is None:
        return Missing("what failed is not known of numbers taken elsewhere", _FOLDER)
    return counted(subject.work.attempts, "run")


def restarts(subject: Subject) -> Fact:
    """How often finished runs went on from a checkpoint: `3 times`."""
    if subject.work is None:
        return Missing("restarts are not known of numbers taken elsewhere", _FOLDER)
    return counted(subject.work.restarts, "time")


def queue_wait(subject: Subject) -> Fact:
    """Median time that a job waited in its queue, where jobs recorded their start."""
    queue = Remedy("Run the study through the queue.", keys=(("launch.on", "slurm"), ("launch.site", "NAME")))
    if subject.work is None or not subject.work.queued:
        return Missing("no run went through a queue", queue)
    if not subject.work.waits:
        return Missing("no job recorded when it started", queue)
    wait, number = units.duration(median(subject.work.waits)), len(subject.work.waits)
    return f"{wait} (median of {counted(number, 'job')}, at most {units.duration(max(subject.work.waits))})"


FACTS = (
    device_hours, energy_wh, watts, sm_percent, memory_percent, gpu_memory, host_memory, mfu, lost_share,
    lost_runs, restarts, queue_wait,
)  # fmt: skip
