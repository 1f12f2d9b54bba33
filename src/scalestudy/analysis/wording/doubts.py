"""Sentences on what speaks against a table, each with what would remove the doubt."""

from collections.abc import Sequence

from scalestudy.analysis.doubts import (
    Doubt,
    FailsEverywhere,
    FlatTimes,
    GroupsOfQualities,
    GroupsOfTimes,
    SuperLinear,
    UnclearSamples,
    UnlikeGpus,
    UnlikeNamedDevices,
    UnmeasuredCounts,
)
from scalestudy.analysis.runs import Key, metric_label
from scalestudy.analysis.wording.estimates import format_ends


def describe_doubt(doubt: Doubt) -> str:
    """A sentence on a doubt, and one on what to do."""
    match doubt:
        case UnlikeGpus():
            sentence = _unlike_gpus(doubt)
        case UnlikeNamedDevices():
            sentence = _unlike_named_devices(doubt)
        case FlatTimes():
            sentence = _flat_times(doubt)
        case FailsEverywhere():
            sentence = _fails_everywhere(doubt)
        case UnmeasuredCounts():
            sentence = _gap(doubt)
        case SuperLinear():
            sentence = _super_linear(doubt)
        case GroupsOfTimes():
            sentence = _groups_of_times(doubt)
        case GroupsOfQualities():
            sentence = _groups_of_qualities(doubt)
        case UnclearSamples():
            sentence = _unclear_samples(doubt)
    return sentence


def _unlike_gpus(doubt: UnlikeGpus) -> str:
    parts = []
    for names, keys in doubt.rows.items():
        # Sorted: a set has an order of its own in each process.
        parts.append(f"{', '.join(sorted(names))}: {_labels(keys)}")
    return (
        f"Rows ran on unlike GPUs, so their times are not comparable ({'; '.join(parts)}). Run all rows on one"
        " kind: CUDA_VISIBLE_DEVICES, or gpu_request and constraint in the site profile."
    )


def _unlike_named_devices(doubt: UnlikeNamedDevices) -> str:
    return (
        f"Rows ran on unlike devices, so their times are not comparable: {doubt.reference.label}, and"
        f" {doubt.choice.label}. Time fewer workers with {doubt.column} = {doubt.device}, too."
    )


def _flat_times(doubt: FlatTimes) -> str:
    return (
        f"The times of {doubt.first.series_label} do not fall with the workers. If each worker did the"
        " whole work (weak scaling), they are no times of the same training: give the samples that"
        " were processed (--column samples_processed=NAME), or the throughput."
    )


def _fails_everywhere(doubt: FailsEverywhere) -> str:
    shares = []
    for key, (count, runs) in doubt.shares.items():
        shares.append(f"{count} of {runs} of {key.label}")
    return (
        f"Some runs of every row learn nothing ({', '.join(shares)}), so this is no matter of workers. They are left"
        " out of the qualities; find out why these seeds fail before a long training."
    )


def _gap(doubt: UnmeasuredCounts) -> str:
    return (
        f"Nothing was measured between {doubt.chosen} and {doubt.larger} workers:"
        f" try {doubt.least} to {doubt.most}."
    )


def _super_linear(doubt: SuperLinear) -> str:
    return (
        f"{doubt.key.label} is {doubt.speedup.value:.3g} times as fast, more than its workers"
        " explain: something slows the reference down, such as its memory, its input or its cache."
        " See `scalestudy diagnose`."
    )


def _groups_of_times(doubt: GroupsOfTimes) -> str:
    where = ""
    if doubt.hosts:
        where = f" (on {', '.join(sorted(doubt.hosts))})"
    return (
        f"The times of {doubt.key.label} form two groups: {doubt.slow} of {doubt.runs} runs{where}"
        f" are {doubt.slower:.0%} slower. Look for a slow node, or another program, and run them again."
    )


def _groups_of_qualities(doubt: GroupsOfQualities) -> str:
    low_mean = f"{doubt.low_mean:.{doubt.digits}f}"
    high_mean = f"{doubt.high_mean:.{doubt.digits}f}"
    return (
        f"The training of {doubt.key.label} is unstable: {doubt.low} of {doubt.seeds} seeds end at"
        f" {metric_label(doubt.metric)} {low_mean}, the others at {high_mean}. A mean describes neither; try a"
        " lower rate or a warm-up."
    )


def _unclear_samples(doubt: UnclearSamples) -> str:
    return (
        f"{doubt.key.label} may need {format_ends(doubt.ratio)} times the samples for the same quality, which would"
        f" be a cost efficiency of {format_ends(doubt.efficiency)}. Run more seeds."
    )


def _labels(keys: Sequence[Key]) -> str:
    return ", ".join([key.label for key in keys])
