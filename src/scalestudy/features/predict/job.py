"""What the processes that use a model are told, as one JSON file that their starter writes."""

from typing import Literal

from pydantic import Field

from scalestudy.study.metrics import Better
from scalestudy.study.model_record import ModelRecord
from scalestudy.study.records import Record


class ItemRecord(Record):
    """See `items.Item`."""

    shown: str
    name: str
    file: str | None = None
    row: int | None = None


class Job(Record):
    """What is done, by how many processes."""

    action: Literal["predict", "evaluate", "gallery", "export"]
    model: str
    """File that a run or an export left, or the folder of a SavedModel."""
    record: ModelRecord
    size: int = 1
    """Number of processes."""
    device: Literal["cpu", "gpu"] = "cpu"
    out: str = ""
    """Folder, or file, that is written."""
    items: list[ItemRecord] = Field(default_factory=list)
    """To predict."""
    overlay: bool = False
    probabilities: Literal["none", "npy", "tiff"] = "none"
    prepared: str = ""
    """Folder of a prepared data set."""
    rows: list[int] = Field(default_factory=list)
    """Rows of it."""
    classes: list[int] = Field(default_factory=list)
    """The model's class for each class of that set."""
    samples: int = 3
    """Of a gallery: samples of each sort."""
    better: Better | None = None
    """Which way the quality is better."""
    form: str = ""
    """Of an export."""
