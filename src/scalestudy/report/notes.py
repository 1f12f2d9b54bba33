"""What was measured how, and what is left out: stated under every table."""

from collections.abc import Iterator

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import engines_of
from scalestudy.analysis.peaks import may_have_tf32
from scalestudy.analysis.quality import MARGIN, OF_ERROR
from scalestudy.analysis.runs import direction_label, metric_label
from scalestudy.report.format import number
from scalestudy.study.engines import label_of
from scalestudy.study.point import REPEATS
from scalestudy.study.strategies import is_synchronous, is_timed

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
    " else of plain training by the same engine. Where there is none, both are relative to the fewest"
    " workers n0 of the strategy: T(n0)/T(n) and n0 T(n0)/(n T(n))."
)
_RATIO = (
    "Speed-up S(n) is T(1)/T(n), and efficiency S(n)/n. The baseline is the one-worker row of the same"
    " strategy, else of plain training."
)
_INTERVALS = (
    "Intervals are 95 % confidence intervals over seeds (Hoefler and Belli, SC15). Runs of one seed are a"
    " block: they were taken in one round, in random order, and share split and initial weights. Speed-"
    "ups and differences of quality are paired within blocks, with the residual variance of row + block "
    "over all rows, or the pair's own where that is larger (Fisher 1935; Montgomery, chapter 4). Times "
    "are geometric means on logarithms; metrics between 0 and 1 have intervals on asin(sqrt(q)) (Anscombe"
    " 1948). One run gives no interval."
)
_COST = (
    "Time to train is from the start of the processes to the result; cost is that time multiplied by the"
    " units billed. Cost efficiency is the cost of the cheapest one-worker row whose quality is as good as"
    " the best one's, divided by a row's. Scaling efficiency is a strategy's own: against its own one worker."
)
_ORDERS = {
    "blocks": '"blocks" (each seed a block of all rows, shuffled)',
    "rows": '"rows" (all seeds of a row one after another, so that drift looks like a difference of rows)',
}
_PRECISIONS = {
    "float32": "float32 (IEEE's on every device)",
    "tf32": "tf32 (float32, with the factors of GPUs' matrix products and convolutions rounded to 10 bits)",
}
_FOLDS = (
    "Folds and other splits are repeats, as seeds are: a row has the mean over them. They share most of their"
    " training samples, so their spread says less of other data than as many data sets would (Bengio and"
    " Grandvalet, JMLR 5, 2004)."
)
_SCRIPT = (
    "A script of its own has trained: its samples are those that it counted, an epoch's training ends with"
    " its last step, and the slowest worker's time counts. Whether runs of one seed share initial weights"
    " and batches is the script's to decide."
)
MOST_HOSTS = 4
"""Nodes that are named."""


def notes(findings: Findings) -> list[str]:
    """Sentences about the measurement, in the order of the table's columns."""
    measured_here = any(not run.foreign for run in findings.runs)
    quality = _quality(findings, measured_here)
    if findings.runs and not measured_here:
        known = any(run.result.quality is not None for run in findings.runs)
        return [_RATIO, _INTERVALS, *([quality] * known)]
    return [
        _THROUGHPUT,
        _TIME,
        *([_SPEED_UP] if len({row.workers for row in findings.rows}) > 1 else []),
        _COST,
        *([_INTERVALS] if any(row.runs > 1 for row in findings.rows) else []),
        *([_SCRIPT] if _by_script(findings) else []),
        *_several_engines(findings),
        quality,
        *([_FOLDS] if any(run.result.swept.keys() & REPEATS for run in findings.runs) else []),
        *_taken(findings),
        *_arithmetic(findings),
        *_chance(findings),
        *_excluded(findings),
    ]


def _several_engines(findings: Findings) -> Iterator[str]:
    """What is compared within an engine, and what between them."""
    engines = [label_of(name) for name in dict.fromkeys(engines_of(findings.measures.groups).values())]
    if len(engines) > 1:
        yield (
            f"Several engines computed ({', '.join(engines)}). Speed-up, efficiency and quality are held"
            " against one worker of the row's own engine. Time to train, cost and cost efficiency compare"
            " engines: a difference there is one of all their software, not of strategies alone."
        )


def _quality(findings: Findings, measured_here: bool) -> str:
    splits = sorted({run.result.quality_split for run in findings.runs if not run.foreign}) or ["validation"]
    metrics = [metric_label(name) for name in sorted({row.metric for row in findings.rows})] or ["metric"]
    ways = dict.fromkeys(
        f" ({direction_label(row.sense.better)})" for row in findings.rows if row.sense.better
    )
    measured = (
        " as the script gives it"
        if _by_script(findings)
        else f" of the saved model over the whole {' / '.join(splits)} set, each sample once, whatever the"
        " number of workers"
    )
    return (
        f"Quality is {' / '.join(metrics)}{''.join(ways)}{measured if measured_here else ''}. It is held"
        f" against the one-worker runs by a margin: {margin_words(findings)}. As in trials of non-inferiority"
        " (Piaggio et al., JAMA 2012) it is no worse if the interval of the difference lies on the good side"
        " of the margin, worse if it lies beyond, else not settled."
    )


def _by_script(findings: Findings) -> bool:
    return any(run.result.by_script for run in findings.runs)


def _chance(findings: Findings) -> Iterator[str]:
    """What a model that learned nothing would have."""
    chance = dict.fromkeys(
        number(row.constant_quality, row.digits) for row in findings.rows if row.constant_quality is not None
    )
    if chance:
        yield (
            f"One answer for every sample (or pixel) would have a quality of {' / '.join(chance)}: what is no"
            " better learned nothing, and nothing is advised on it, nor on runs that diverged."
        )


def margin_words(findings: Findings) -> str:
    """The loss of quality that is accepted, and who chose it."""
    if findings.margin is not None:
        return f"{findings.margin} of quality, set by quality_margin in the study file"
    return (
        f"by default {MARGIN:g}, or {100 * OF_ERROR:g} % of the reference's error where that is less, for"
        f" metrics in [0, 1], and {100 * MARGIN:g} % of the reference for others; quality_margin in the study"
        " file sets it"
    )


def _taken(findings: Findings) -> Iterator[str]:
    """When, where and in which order runs were taken."""
    results = [run.result for run in findings.runs if not run.foreign]
    dates = sorted(result.finished[:10] for result in results if result.finished)
    if not dates:
        return
    when = " to ".join(sorted({dates[0], dates[-1]}))
    hosts = sorted({host for result in results for host in result.hosts})
    orders = sorted({result.order for result in results if result.order})
    more = f" and {len(hosts) - MOST_HOSTS} more" if len(hosts) > MOST_HOSTS else ""
    where = f" on {', '.join(hosts[:MOST_HOSTS])}{more}" if hosts else ""
    how = f", in the order {' / '.join(map(_ORDERS.__getitem__, orders))}" if orders else ""
    yield f"Runs ended on {when}{where}{how}."


def _arithmetic(findings: Findings) -> Iterator[str]:
    """What runs computed in and on, which need not repeat, and with what weights they began."""
    results = [run.result for run in findings.runs]
    known = sorted({result.precision for result in results if result.precision})
    if known:
        yield f"Arithmetic is {' / '.join(_PRECISIONS.get(name, name) for name in known)}."
    if any(
        run.result.precision == "float32" and rank.device_uuids and any(map(may_have_tf32, rank.devices))
        for run in findings.runs
        for rank in run.ranks
    ):
        yield (
            "TensorFlow's own default on GPUs from Ampere on is TensorFloat-32. IEEE's float32 computes more"
            " slowly and hides more of the exchange behind it, so efficiency looks better than it would with"
            ' precision = "tf32".'
        )
    if free := sum(result.deterministic is False for result in results):
        yield (
            f"In {free} of {len(results)} runs operations could add up in any order (deterministic = false):"
            " the same seed need not give the same weights again."
        )
    if weights := sorted({result.weights for result in results if result.weights is not None}):
        begun = " / ".join("none, from scratch" if name == "none" else name for name in weights)
        yield f"Pretrained weights that models began with: {begun}."
    on_gpus = [rank for run in findings.runs for rank in run.ranks if rank.device_uuids]
    kinds = sorted({name for rank in on_gpus for name in rank.devices})
    if len(kinds) > 1:
        yield (
            f"Runs computed on unlike GPUs ({', '.join(kinds)}): speed-ups hold what these differ by, and"
            " among several a step takes as long as on the slowest. Have all runs on one kind:"
            " CUDA_VISIBLE_DEVICES, or gpu_request and constraint in the site profile."
        )


def _excluded(findings: Findings) -> Iterator[str]:
    over = [row.key.label for row in findings.rows if row.oversubscribed]
    if over:
        yield (
            "Oversubscribed points (more workers than cores or GPUs) keep their times but have no"
            f" speed-up and are no baseline: {', '.join(over)}."
        )
    shared = sum(any(rank.nodes_shared for rank in run.ranks) for run in findings.runs)
    if shared:
        yield (
            f"{shared} of {len(findings.runs)} runs were timed on nodes that other jobs could compute on at"
            " the same time, which may have slowed them:"
            " exclusive = true in the site profile asks for whole nodes."
        )
    if any(not is_timed(row.implementation) for row in findings.rows):
        yield (
            "Virtual workers are computed one after another on one device: their quality is that of real"
            " workers, their times are not, so they have no speed-up."
        )
    if any(not is_synchronous(row.implementation) for row in findings.rows):
        yield (
            "Asynchronous workers update the weights each by itself, from weights that others have changed"
            " meanwhile: more of them make each update staler. Their throughput counts samples, not progress;"
            " what they are worth is their quality over seeds. They have no speed-up, and no place in the"
            " advice."
        )
    gone = sum(row.workers_lost for row in findings.rows)
    if gone:
        yield f"Workers that were lost in runs that went on without them (workers_lost): {gone}."
    lost = [run.result for run in findings.runs if run.result.model_missing]
    if lost:
        names = "; ".join(f"{result.name} ({result.model_missing})" for result in lost)
        yield f"Runs that are measured, but whose model is missing: {names}."
    for run in findings.runs:
        if run.damage:
            yield (
                f"Epochs are missing in the curves of {run.result.name}: {'; '.join(run.damage)}."
                " `scalestudy status --verify` says more."
            )
    undone = sum(point.state != "done" for point in findings.planned)
    if undone:
        yield f"Not in the table: {undone} of {len(findings.planned)} runs, which are not done."
