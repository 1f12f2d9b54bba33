"""A study, and its text as a study file."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, PrivateAttr

from scalestudy.config.key_lines import KeyLines
from scalestudy.config.keys import ALL_SECTIONS, SWEEP_KEYS
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.config.settings import (
    DataSettings,
    LaunchSettings,
    PlanSettings,
    StoredSettings,
    TrainSettings,
)
from scalestudy.config.task_defaults import TaskDefaults, task_defaults
from scalestudy.config.toml_text import toml_line
from scalestudy.config.value_types import Seed, Strategy, Workers
from scalestudy.plugins.strategies import DEFAULT

TEXTS = ("title", "description")
"""Keys with words for the readers of a report, which change no run."""
MOST_POINTS = 10_000
FEWER = "Sweep fewer values at once, or make several studies."


class SweepSettings(StoredSettings):
    """What is varied: each combination of these values is a point, which is trained once.

    Any key of [data], [train] and [launch] can be added with a list of values.
    """

    strategy: tuple[Strategy, ...] = (DEFAULT,)
    """How workers combine their gradients; each strategy belongs to an engine. "native" is TensorFlow's own
    way: "single" for one worker, "mirrored" on one node, "multiworker" across nodes; "ddp" is PyTorch's. By
    default, the own way of the engine that computes the task. `scalestudy check --strategies` lists all."""
    workers: tuple[Workers, ...] = (1, 2)
    """Numbers of workers."""
    seed: tuple[Seed, ...] = (0, 1, 2)
    """Seeds of initial weights, order of samples and dropout: the repeats behind the confidence intervals."""
    other: dict[str, list[Any]] = Field(default_factory=dict)
    """Other swept keys by dotted name, as JSON values: `{"train.batch_size": [8, 16]}`."""


def _margin(given: object) -> object:
    if given is None or isinstance(given, QualityMargin):
        return given
    return QualityMargin.parse(given)


class Study(StoredSettings):
    """A whole sweep, as its file describes it."""

    name: str
    """Name of the study and of its results folder, studies/NAME. By default, the name of the file."""
    task: str
    """What is trained: a built-in task such as "unet" or "cnn", a model of Keras ("keras:EfficientNetV2B0"),
    or the path of your own Python file."""
    title: str = Field(default="", examples=["U-Net on nuclei: how many GPUs?"])
    """Title of the report. By default, the name of the study."""
    description: str = Field(
        default="",
        examples=["Which request is worth it for the proposal of May?"],
    )
    """A sentence or two below the title, for readers who do not know the study."""
    quality_margin: Annotated[
        QualityMargin | None,
        BeforeValidator(_margin),
        # A lambda: an annotated return value would change the schema of what is written.
        PlainSerializer(lambda margin: margin and margin.key),
    ] = Field(default=None, examples=[0.01, "2 %"])
    """How much worse than one worker's the quality may be to count as no worse: in units of the metric, or as
    a percentage. By default, a rule for the metric."""
    plan: PlanSettings = PlanSettings()
    data: DataSettings = DataSettings()
    train: TrainSettings = TrainSettings()
    sweep: SweepSettings = SweepSettings()
    launch: LaunchSettings = LaunchSettings()
    # Private: where a key is written is no part of the study, and is not stored.
    _place: KeyLines = PrivateAttr(default_factory=KeyLines)

    @property
    def place(self) -> KeyLines:
        """File and lines of its keys."""
        return self._place

    @cached_property
    def defaults(self) -> TaskDefaults:
        """The defaults of its task for keys that it leaves out; the task's file is read once."""
        return task_defaults(self.task)

    def placed(self, place: KeyLines) -> "Study":
        """Return this study with the file and lines of its keys."""
        copy = self.model_copy()
        copy._place = place
        return copy

    def with_data(self, **keys: str) -> "Study":
        """Return this study with other data settings."""
        return self.model_copy(update={"data": self.data.model_copy(update=keys)})


def study_toml(study: Study) -> str:
    """Write a study as a study file, with the keys that differ from their defaults."""
    lines = [toml_line("name", study.name), toml_line("task", _escape(study.task))]
    for key in TEXTS:
        text = getattr(study, key)
        if text:
            lines.append(toml_line(key, _escape(text)))
    if study.quality_margin:
        lines.append(toml_line("quality_margin", study.quality_margin.key))
    # In full, unlike the other sections: which strategies are a default depends on the task.
    sweep = study.sweep.model_dump(mode="json")
    swept = {key: sweep[key] for key in SWEEP_KEYS}
    swept |= study.sweep.other
    lines += _section("sweep", swept)
    for section in ALL_SECTIONS:
        given = getattr(study, section).model_dump(
            mode="json",
            exclude_defaults=True,
            exclude_none=True,
        )
        if given:
            lines += _section(section, given)
    return "\n".join(lines) + "\n"


def _section(name: str, values: Mapping[str, Any]) -> list[str]:
    lines = ["", f"[{name}]"]
    for key, value in values.items():
        lines.append(toml_line(key, _escape(value)))
    return lines


def _escape(value: Any) -> Any:
    # A study file expands $VARIABLES, so a literal dollar is doubled.
    if isinstance(value, list | tuple):
        return [_escape(item) for item in value]
    if isinstance(value, str):
        return value.replace("$", "$$")
    return value
