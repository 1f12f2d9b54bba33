"""What was measured how, and what is left out: stated under every table."""

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.gpus import energy_note
from scalestudy.analysis.peaks import may_have_tf32
from scalestudy.analysis.quality import MARGIN, OF_ERROR
from scalestudy.analysis.runs import direction_label, metric_label
from scalestudy.report.format import number
from scalestudy.study.strategies import is_timed

_THROUGHPUT = (
    "Throughput counts the samples really processed, divided by training time, over the steady epochs:"
    " all but the first and those in which a run was resumed."
)
_TIME = (
    "Training time is steps and waiting for their input over all epochs; start-up, compilation and"
    " evaluation are not in it."
)
_SPEED_UP = (
    "Speed-up S(n) is T(1)/T(n) for the same work, computed twice: from steady throughput and from total"
    " training time. Efficiency is S(n)/n. The baseline is the one-worker point of the same strategy,"
    " else of single or native. Where there is none, both are relative to the fewest workers n0 of the"
    " strategy: T(n0)/T(n) and n0 T(n0)/(n T(n))."
)
_RATIO = (
    "Speed-up S(n) is T(1)/T(n), and efficiency S(n)/n. The baseline is the one-worker row of the same"
    " strategy, else of single or native."
)
_INTERVALS = (
    "Intervals hold with 95 % over seeds (Hoefler and Belli, SC15). Runs of one seed are a block: they were"
    " taken in one round, in random order, and share split and initial weights. Speed-ups and differences"
    " of quality are paired within blocks, with the residual variance of row + block over all rows, or the"
    " pair's own where that is larger (Fisher 1935; Montgomery, chapter 4). Times are geometric means on"
    " logarithms; metrics between 0 and 1 have intervals on asin(sqrt(q)) (Anscombe 1948). One run gives no"
    " interval."
)
_COST = (
    "Time to train is from the start of the processes to the result; cost is that time multiplied by the"
    " units billed. Cost efficiency is the cost of the cheapest one-worker row whose quality is as good as"
    " the best one's, divided by a row's. Scaling efficiency is a strategy's own: against its own one worker."
)


def notes(findings: Findings) -> list[str]:
    """Sentences about the measurement, in the order of the table's columns."""
    ours = [run for run in findings.runs if not run.foreign]
    splits = sorted({run.result.quality_split for run in ours}) or ["validation"]
    metrics = [metric_label(name) for name in sorted({row.metric for row in findings.rows})] or ["metric"]
    ways = dict.fromkeys(
        f" ({direction_label(row.sense.better)})" for row in findings.rows if row.sense.better
    )
    measured = (
        f" of the saved model over the whole {' / '.join(splits)} set, each sample once, whatever the number"
        " of workers"
    )
    quality = (
        f"Quality is {' / '.join(metrics)}{''.join(ways)}{measured if ours else ''}. It is held against the"
        f" one-worker runs by a margin: {margin_words(findings)}. As in trials of non-inferiority"
        " (Piaggio et al., JAMA 2012) it is no worse if the interval of the difference lies on the good side"
        " of the margin, worse if it lies beyond, else not settled."
    )
    if findings.runs and not ours:
        known = any(run.result.quality is not None for run in findings.runs)
        return [_RATIO, _INTERVALS, *([quality] * known)]
    return [
        _THROUGHPUT,
        _TIME,
        _SPEED_UP,
        _COST,
        _INTERVALS,
        quality,
        *_arithmetic(findings),
        *_weights(findings),
        *_unlike_gpus(findings),
        *_chance(findings),
        *energy_note(findings.runs),
        *_excluded(findings),
    ]


_PRECISIONS = {
    "float32": "float32 (IEEE's on every device)",
    "tf32": "tf32 (float32, with the factors of GPUs' matrix products and convolutions rounded to 10 bits)",
}


def _arithmetic(findings: Findings) -> list[str]:
    """What runs computed in, and which need not repeat; nothing where no run recorded it."""
    results = [run.result for run in findings.runs]
    known = sorted({result.precision for result in results if result.precision})
    sentences = [f"Arithmetic is {' / '.join(_PRECISIONS.get(name, name) for name in known)}."] * bool(known)
    if _without_tf32(findings):
        sentences.append(
            "TensorFlow's own default on GPUs from Ampere on is TensorFloat-32. IEEE's float32 computes more"
            " slowly and hides more of the exchange behind it, so efficiency looks better than it would with"
            ' precision = "tf32".'
        )
    free = sum(result.deterministic is False for result in results)
    if free:
        differ = (
            " The others repeat bit for bit, which costs a GPU speed: throughputs of the two are not of one"
            " kind."
            if any(result.deterministic for result in results)
            else ""
        )
        sentences.append(
            f"In {free} of {len(results)} runs operations could add up in any order (deterministic = false):"
            f" the same seed need not give the same weights again.{differ}"
        )
    return sentences


def _without_tf32(findings: Findings) -> bool:
    """Whether runs computed in IEEE's float32 on GPUs that have TensorFloat-32."""
    return any(
        may_have_tf32(name)
        for run in findings.runs
        if run.result.precision == "float32"
        for rank in run.ranks
        if rank.device_uuids
        for name in rank.devices
    )


def _weights(findings: Findings) -> list[str]:
    """What models began with, where their task has pretrained weights."""
    results = [run.result for run in findings.runs if run.result.weights is not None]
    scratch = sum(result.weights == "none" for result in results)
    others = sorted({str(result.weights) for result in results if result.weights != "none"})
    sentences = []
    if scratch:
        whose = "The models were" if scratch == len(findings.runs) else f"The models of {scratch} runs were"
        sentences.append(f"{whose} trained from scratch, without pretrained weights.")
    if others:
        sentences.append(f"Models began with pretrained weights ({' / '.join(others)}).")
    if any(result.weights != "none" and result.input_scaling == "unit" for result in results):
        sentences.append(
            "Their input was scaled to 0 to 1, as in the published study, which is not what the weights were"
            ' trained on: input_scaling = "pretrained" gives that.'
        )
    return sentences


def _unlike_gpus(findings: Findings) -> list[str]:
    """That runs computed on GPUs of several kinds, as their ranks recorded; nothing where they did not."""
    on_gpus = [rank for run in findings.runs for rank in run.ranks if rank.device_uuids]
    kinds = sorted({name for rank in on_gpus for name in rank.devices})
    if len(kinds) < 2:
        return []
    return [
        f"Runs computed on unlike GPUs ({', '.join(kinds)}): speed-ups hold what these differ by, and among"
        " several a step takes as long as on the slowest. Have all runs on one kind: CUDA_VISIBLE_DEVICES, or"
        " gpu_request and constraint in the site profile."
    ]


def _chance(findings: Findings) -> list[str]:
    """What a model that learned nothing would have; nothing where no run recorded it."""
    known = [row for row in findings.rows if row.constant_quality is not None]
    if not known:
        return []
    values = dict.fromkeys(number(row.constant_quality, row.digits) for row in known)
    return [
        f"One answer for every sample (or pixel) would have a quality of {' / '.join(values)}: what is no"
        " better learned nothing, and nothing is advised on it, nor on runs that diverged."
    ]


def margin_words(findings: Findings) -> str:
    """The loss of quality that is accepted, and who chose it."""
    margin = findings.margin
    if margin is not None:
        return f"{margin} of quality, set by quality_margin in the study file"
    return (
        f"by default {MARGIN:g}, or {100 * OF_ERROR:g} % of the reference's error where that is less, for"
        f" metrics in [0, 1], and {100 * MARGIN:g} % of the reference for others; quality_margin in the study"
        " file sets it"
    )


def _excluded(findings: Findings) -> list[str]:
    sentences = []
    over = [row for row in findings.rows if row.oversubscribed]
    if over:
        names = ", ".join(row.key.label for row in over)
        sentences.append(
            "Oversubscribed points (more workers than cores or GPUs) keep their times but have no"
            f" speed-up and are no baseline: {names}."
        )
    shared = sum(any(rank.nodes_shared for rank in run.ranks) for run in findings.runs)
    if shared:
        sentences.append(
            f"{shared} of {len(findings.runs)} runs were timed on nodes that other jobs could compute on at"
            " the same time, which may have slowed them:"
            " exclusive = true in the site profile asks for whole nodes."
        )
    if any(not is_timed(row.implementation) for row in findings.rows):
        sentences.append(
            "Virtual workers are computed one after another on one device: their quality is that of real"
            " workers, their times are not, so they have no speed-up."
        )
    lost = [run.result for run in findings.runs if run.result.model_missing]
    if lost:
        names = "; ".join(f"{result.name} ({result.model_missing})" for result in lost)
        sentences.append(f"Runs that are measured, but whose model is missing: {names}.")
    torn = [run for run in findings.runs if run.damage]
    sentences += [
        f"Epochs are missing in the curves of {run.result.name}: {'; '.join(run.damage)}."
        " `scalestudy status --verify` says more."
        for run in torn
    ]
    open_ = [point for point in findings.planned if point.state != "done"]
    if open_:
        sentences.append(
            f"Not in the table: {len(open_)} of {len(findings.planned)} runs, which are not done."
        )
    return sentences
