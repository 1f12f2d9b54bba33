"""What a reader of numbers taken elsewhere is given, and what it gives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalestudy.analysis.runs import Source
from scalestudy.study.metrics import Better
from scalestudy.study.records import EpochOutcome

UNNAMED = "unnamed"
"""Strategy of numbers that say none."""


@dataclass(frozen=True)
class Wanted:
    """What the user says of the numbers, which goes before what is found.

    Attributes:
        columns: Name of the column of each role, as {"workers": "NGPUS"}.
        units: Unit of each role, as {"seconds": "min"}.
        strategy: Of all runs that say none.
        workers: Likewise.
        metric: Column or tag that is the quality, or the name of a metric.
        better: Which way it is better.
        epochs: Of all runs that say none.
        samples: Size of the training set, likewise.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    strategy: str | None = None
    workers: int | None = None
    metric: str | None = None
    better: Better | None = None
    epochs: int | None = None
    samples: int | None = None


@dataclass(frozen=True)
class Facts:
    """What a file says of one run; None for what it does not."""

    source: Source
    workers: int | None = None
    strategy: str | None = None
    seed: int | None = None
    seconds: float | None = None
    """Of the whole training."""
    epoch_seconds: float | None = None
    throughput: float | None = None
    """Samples per second, of all workers together."""
    quality: float | None = None
    metric: str = ""
    better: Better | None = None
    epochs: int | None = None
    updates: int | None = None
    per_worker_batch: int | None = None
    global_batch: int | None = None
    samples: int | None = None
    """Size of the training set."""
    labels: int | None = None
    """Samples that the quality was measured on."""
    gpu_percent: float | None = None
    oversubscribed: str | None = None
    swept: Mapping[str, Any] = field(default_factory=dict)
    log: tuple[EpochOutcome, ...] = ()


@dataclass(frozen=True)
class Reading:
    """What was read of a file.

    Attributes:
        facts: One for each run.
        remarks: What was understood and how, in sentences without the file's name.
        skipped: Lines that could not be read, likewise: "line 7: …".
    """

    facts: tuple[Facts, ...]
    remarks: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Head:
    """The beginning of a file, by which its form is told.

    Attributes:
        path: The file, or a folder of several that are one run.
        data: Its first bytes.
        text: The same, decoded; "" of what is no text.
    """

    path: Path
    data: bytes
    text: str

    @property
    def lines(self) -> Sequence[str]:
        """Lines that are not empty."""
        return [line for line in self.text.splitlines() if line.strip()]


@dataclass(frozen=True)
class Reader:
    """A form of file.

    Attributes:
        what: The form in a few words: "Keras CSVLogger".
        recognises: Whether a file that begins so is one.
        read: Its runs. Raises `UserError` on what leaves several meanings, with the way out.
        files: What it takes, for the list of forms.
    """

    what: str
    recognises: Callable[[Head], bool]
    read: Callable[[Path, Wanted], Reading]
    files: str = ""
