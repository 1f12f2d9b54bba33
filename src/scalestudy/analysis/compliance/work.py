"""How many samples an epoch really processed, as far as steps and batch tell."""

from dataclasses import dataclass

from scalestudy.analysis.rates import epoch_seconds
from scalestudy.analysis.runs import Run


@dataclass(frozen=True)
class Work:
    """Samples of an epoch.

    Attributes:
        processed: By steps and batch.
        samples: Of the training set.
        known: Whether the steps are stated; else what they are where the remainder is dropped.
    """

    processed: int
    samples: int
    known: bool

    @property
    def share(self) -> float:
        """Part of the training set that was processed."""
        return self.processed / self.samples


def work_of(run: Run) -> Work | None:
    """Work of a run's epoch; None where size, batch or what the set holds is not known."""
    result = run.result
    samples, batch = result.training_samples, result.global_batch
    if not samples or not batch or batch > samples:
        return None
    if result.samples_processed is not None and result.epochs and (result.updates or not run.foreign):
        return Work(min(round(result.samples_processed / result.epochs), samples), samples, known=True)
    return Work(samples // batch * batch, samples, known=False) if run.foreign else None


def counts_whole_set(run: Run, work: Work) -> bool | None:
    """Whether a stated throughput divides the whole set by an epoch's time; None where no time tells."""
    seconds, rate = epoch_seconds(run), run.result.throughput
    if seconds is None and run.result.training_seconds and run.result.epochs:
        seconds = run.result.training_seconds / run.result.epochs
    if seconds is None or rate is None:
        return None
    counted = rate * seconds
    return abs(counted - work.samples) < abs(counted - work.processed)
