"""Facts on what a training costs, and on what was lost: for the sentences of a statement."""

from statistics import median

from scalestudy import units
from scalestudy.statement.remedy import Remedy
from scalestudy.statement.subject import Subject
from scalestudy.statement.use import gpu_memory_of, host_memory_of, memory_percent_of, watts_of
from scalestudy.statement.words import Fact, Missing, counted, figure

_GPUS = Remedy("Run the study on GPUs whose driver tells it (NVML).")
_AGAIN = Remedy("Run the study again with this version.")
_FOLDER = Remedy("Name a folder of results that Scalestudy made: other files do not tell of failed runs.")


def worker_hours(subject: Subject) -> Fact:
    """Workers times hours of one training loop."""
    found = subject.row.worker_hours
    return Missing("a training time is not a number", Remedy(seeds=3)) if found is None else figure(found, 3)


def energy_wh(subject: Subject) -> Fact:
    """Wh that the GPUs drew in one training."""
    found = subject.row.energy
    return (
        Missing("no energy of GPUs was recorded", _GPUS) if found is None else f"{figure(found / 3600, 3)} Wh"
    )


def watts(subject: Subject) -> Fact:
    """Mean power of all GPUs of a run together, in W."""
    found = watts_of(subject.runs(subject.row))
    return Missing("no power of GPUs was recorded", _GPUS) if found is None else f"{figure(found, 3)} W"


def sm_percent(subject: Subject) -> Fact:
    """Mean share of time in which a kernel ran on the GPUs, in per cent."""
    found = subject.row.gpu_percent
    return Missing("no utilisation of GPUs was recorded", _GPUS) if found is None else f"{found:.0f} %"


def memory_percent(subject: Subject) -> Fact:
    """Mean share of time in which the GPUs' memory was read or written, in per cent."""
    found = memory_percent_of(subject.runs(subject.row))
    return Missing("no use of GPUs' memory was recorded", _GPUS) if found is None else f"{found:.0f} %"


def gpu_memory(subject: Subject) -> Fact:
    """The most memory that was in use on a GPU."""
    found = gpu_memory_of(subject.runs(subject.row))
    return Missing("no memory of GPUs was recorded", _GPUS) if found is None else units.size(found)


def host_memory(subject: Subject) -> Fact:
    """The most memory that a process of the run held."""
    found = host_memory_of(subject.runs(subject.row))
    return Missing("no memory was recorded", _AGAIN) if found is None else units.size(found)


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
    worker_hours, energy_wh, watts, sm_percent, memory_percent, gpu_memory, host_memory, lost_share,
    lost_runs, restarts, queue_wait,
)  # fmt: skip
