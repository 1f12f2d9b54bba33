"""What was measured how, and what is left out: stated under every table."""

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.quality import MARGIN
from scalestudy.analysis.runs import metric_label

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
    " else of single or native."
)
_INTERVALS = (
    "Intervals hold with 95 % over seeds: Student's t for means; Welch's for differences of quality and,"
    " on logarithms, for speed-up. One run gives no interval."
)


def notes(findings: Findings) -> list[str]:
    """Sentences about the measurement, in the order of the table's columns."""
    splits = sorted({run.result.quality_split for run in findings.runs}) or ["validation"]
    metrics = [metric_label(name) for name in sorted({row.metric for row in findings.rows})] or ["metric"]
    quality = (
        f"Quality is {' / '.join(metrics)} after the last epoch over the whole {' / '.join(splits)} set,"
        " each sample once, whatever the number of workers. It counts as no worse when its interval"
        f" reaches no more than {100 * MARGIN:g} % below the one-worker runs."
    )
    return [_THROUGHPUT, _TIME, _SPEED_UP, _INTERVALS, quality, *_excluded(findings)]


def _excluded(findings: Findings) -> list[str]:
    sentences = []
    over = [row for row in findings.rows if row.oversubscribed]
    if over:
        names = ", ".join(row.key.label for row in over)
        sentences.append(
            "Oversubscribed points (more workers than cores or GPUs) keep their times but have no"
            f" speed-up and are no baseline: {names}."
        )
    if any(row.implementation == "virtual" for row in findings.rows):
        sentences.append(
            "Virtual workers are computed one after another on one device: their quality is that of real"
            " workers, their times are not, so they have no speed-up."
        )
    open_ = [point for point in findings.planned if point.state != "done"]
    if open_:
        sentences.append(
            f"Not in the table: {len(open_)} of {len(findings.planned)} runs, which are not done."
        )
    return sentences
