"""What the columns of a table are, by their names: whatever their case, spaces and units."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalestudy.errors import UserError
from scalestudy.features.imported.values import TIMES
from scalestudy.printable import printable
from scalestudy.study.metrics import known

NAMES: dict[str, tuple[str, ...]] = {
    "workers": (
        "workers worker num_workers n_workers nworkers",
        "gpus gpu ngpu ngpus n_gpus num_gpus gpu_count number_of_gpus devices ndevices n_devices num_devices"
        " ranks nranks n_ranks num_ranks mpi_ranks np nproc nprocs n_procs num_procs processes size"
        " world_size replicas num_replicas accelerators num_accelerators n tasks ntasks n_tasks",
    ),
    "strategy": ("strategy", "method distribution distribution_strategy framework library"),
    "seed": ("seed", "random_seed rng_seed"),
    "seconds": (
        "training_seconds",
        "seconds time training_time train_time trainingtime traintime runtime run_time elapsed elapsed_time"
        " total_time wall_time walltime duration fit_time minutes hours",
    ),
    "epoch_seconds": (
        "epoch_seconds",
        "time_per_epoch epoch_time seconds_per_epoch sec_per_epoch time_epoch avg_epoch_time mean_epoch_time",
    ),
    "throughput": (
        "throughput",
        "images_per_second images_per_sec imgs_per_sec img_per_sec images_s imgs_s img_s images_sec img_sec"
        " samples_per_second samples_per_sec samples_s samples_sec examples_per_second examples_per_sec"
        " examples_s examples_sec ips fps images_second samples_second total_images_sec",
    ),
    "epochs": ("epochs", "n_epochs num_epochs nepochs number_of_epochs"),
    "updates": ("updates", "total_steps optimizer_steps n_updates num_updates iterations total_iterations"),
    "steps": ("steps_per_epoch", "steps_epoch batches_per_epoch iterations_per_epoch"),
    "per_worker_batch": (
        "per_worker_batch",
        "batch_per_gpu batch_size_per_gpu per_gpu_batch per_gpu_batch_size local_batch local_batch_size"
        " per_device_batch per_device_batch_size batch_per_worker batch_per_device per_replica_batch_size",
    ),
    "global_batch": (
        "global_batch",
        "global_batch_size total_batch total_batch_size effective_batch effective_batch_size",
    ),
    "batch": ("batch", "batch_size batchsize bs"),
    "samples": (
        "training_samples",
        "train_samples n_samples num_samples samples n_train num_train training_images train_images images"
        " dataset_size train_size",
    ),
    "labels": (
        "quality_labels",
        "validation_samples val_samples n_val num_val validation_images val_images val_size eval_samples",
    ),
    "gpu_percent": (
        "gpu_percent",
        "gpu_util gpu_utilization gpu_utilisation mean_gpu_util mean_gpu_utilization utilization utilisation"
        " gpu_usage sm_util",
    ),
    "speedup": ("speedup", "speed_up"),
    "efficiency": ("efficiency", "scaling_efficiency parallel_efficiency"),
    "learning_rate": ("learning_rate", "lr rate"),
    "epoch": ("epoch",),
    "loss": ("loss", "train_loss training_loss"),
    "validation_loss": ("val_loss", "validation_loss valid_loss test_loss eval_loss"),
    "metric": ("metric",),
    "better": ("better",),
    "oversubscribed": ("oversubscribed",),
    "quality": ("quality", "score"),
}
"""Names of each role, squeezed: ours, which go before those of others."""
ROLES = tuple(NAMES)
TIMED = ("seconds", "epoch_seconds")
OVERLOOKED = frozenset({
    "name", "run", "runs", "repeat", "repetition", "rep", "trial", "id", "date", "finished", "host",
    "hostname", "job", "jobid", "job_id", "notes", "comment", "folder", "baseline", "implementation",
    "communication", "speedup_note", "quality_note", "constant_quality", "source",
})  # fmt: skip
"""Columns that are neither measured here nor swept."""
_UNIT = re.compile(r"^(.*?)\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$")
_STATISTIC = re.compile(r"_(avg|mean|median)$")
_PER_DEVICE = re.compile(r"_(per_gpu|gpu|per_device|per_worker)$")
_SPLITS = ("", "val_", "validation_", "valid_", "eval_", "test_")


@dataclass(frozen=True)
class Column:
    """A column and what it is.

    Attributes:
        name: As written in the file.
        unit: As written with it, in small letters; "" where it says none.
        per_device: Whether it counts for each worker alone.
    """

    name: str
    unit: str = ""
    per_device: bool = False


def squeezed(name: str) -> str:
    """A name without case, spaces and signs: `Time per Epoch` and `time/epoch` are `time_per_epoch`."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", name.strip())
    text = text.lower().replace("#", "n_").replace("/", "_")
    return re.sub(r"[^a-z0-9]+", "_", text).strip("_")


def find(header: Sequence[str], said: Mapping[str, str]) -> dict[str, Column]:
    """The column of each role that there is one for.

    Args:
        header: Names of the columns.
        said: Names that the user gave, by role; they go before all others.

    Raises:
        UserError: Two columns could be the same, or one that was said is not there.
    """
    found = {role: _said(header, role, name) for role, name in said.items() if role in NAMES}
    taken = {column.name for column in found.values()}
    parsed = {name: _parsed(name) for name in header if name not in taken}
    for role, tiers in NAMES.items():
        if role in found:
            continue
        for tier in tiers:
            names = [name for name, (core, _) in parsed.items() if _is(core, tier.split(), role)]
            if len(names) > 1:
                raise UserError(
                    f"one column that says {role}",
                    f"{len(names)}: {', '.join(repr(printable(name)) for name in names)}",
                    f"Say which: --column {role}={printable(names[0])}",
                )
            if names:
                core, unit = parsed[names[0]]
                per_device = role == "throughput" and bool(_PER_DEVICE.search(core))
                found[role] = Column(names[0], unit or _unit_of(core), per_device)
                break
    return found


def qualities(header: Sequence[str]) -> list[str]:
    """Columns that are metrics by their names, those over a validation set first; no losses."""
    found = []
    for name in header:
        core, _ = _parsed(name)
        for place, split in enumerate(_SPLITS):
            rest = core.removeprefix(split)
            if (split == "" or rest != core) and known(rest).better == "higher":
                found.append((place == 0, name))
                break
    best = [name for training, name in found if not training]
    return best or [name for _, name in found]


def metric_name(column: str) -> str:
    """Name of the metric of a column: `val_accuracy` is accuracy."""
    core = _parsed(column)[0]
    core = "accuracy" if core in ("acc", "top1") else re.sub(r"_acc$", "_accuracy", core)
    return next((core.removeprefix(split) for split in _SPLITS[1:] if core.startswith(split)), core)


def _parsed(name: str) -> tuple[str, str]:
    """Squeezed name and unit: `Time [min]` is ("time", "min"); `img/s` keeps its own."""
    with_unit = _UNIT.fullmatch(name.strip())
    core, unit = (with_unit[1], with_unit[2].lower()) if with_unit else (name, "")
    return _STATISTIC.sub("", squeezed(core)), unit


def _is(core: str, names: Sequence[str], role: str) -> bool:
    if core in names:
        return True
    if role in TIMED:
        stem, _, unit = core.rpartition("_")
        return unit in TIMES and stem in names
    return role == "throughput" and _PER_DEVICE.sub("", core) in names


def _unit_of(core: str) -> str:
    last = core.rpartition("_")[2]
    return last if last in TIMES else ""


def _said(header: Sequence[str], role: str, name: str) -> Column:
    for each in header:
        if each == name or squeezed(each) == squeezed(name):
            core, unit = _parsed(each)
            return Column(
                each, unit or _unit_of(core), role == "throughput" and bool(_PER_DEVICE.search(core))
            )
    raise UserError(
        f"a column {printable(name)!r} that says {role}",
        f"the columns {', '.join(printable(each) for each in header[:20])}",
        f"Correct --column {role}=NAME.",
    )
