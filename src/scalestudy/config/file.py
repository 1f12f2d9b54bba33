"""A study, and the file it is written in."""

import codecs
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, PrivateAttr

from scalestudy.config.catalog import TaskDefaults, task_defaults
from scalestudy.config.lines import KeyLines
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.config.settings import (
    DataSettings,
    EngineName,
    LaunchSettings,
    Seed,
    Strategy,
    StrictModel,
    TrainSettings,
    Workers,
)
from scalestudy.plugins.engines import DEFAULT as DEFAULT_ENGINE
from scalestudy.plugins.strategies import DEFAULT
from scalestudy.util.errors import UserError, explained
from scalestudy.util.files import contents

LARGEST = 2**20
"""Largest study file or site profile that is read, in bytes."""
NUMBERS = ("a file of numbers", "Report it: scalestudy report --from {}")
OTHERS = {
    ".py": ("a Python script", "Train with it: scalestudy launch -n 2 {}"),
    ".sh": ("a shell script", "Name the study file; `scalestudy init` writes one."),
    **dict.fromkeys((".yaml", ".yml"), ("which is YAML", "Write it as TOML; `scalestudy init` shows how.")),
    **dict.fromkeys((".csv", ".json"), NUMBERS),
}
"""Other files that users pass as study files: a description and a remedy, by suffix."""
DEEPEST = 20
"""Largest nesting of lists and tables; no key needs more than a few levels."""
MOST_POINTS = 10_000
FEWER = "Sweep fewer values at once, or make several studies."
_LONG_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){100}""")
"""A key with so many parts that `tomllib` would take minutes."""


class SweepSettings(StrictModel):
    """What is varied: each combination of these values is a point, which is trained once.

    Any key of [data], [train] and [launch] can be added with a list of values.
    """

    strategy: tuple[Strategy, ...] = (DEFAULT,)
    """How workers combine their gradients. "native" is the engine's own way: in TensorFlow "single" for one
    worker, "mirrored" on one node, "multiworker" across nodes. `scalestudy check --strategies` lists all."""
    workers: tuple[Workers, ...] = (1, 2)
    """Numbers of workers."""
    seed: tuple[Seed, ...] = (0, 1, 2)
    """Seeds of initial weights, order of samples and dropout: the repeats behind the confidence intervals."""
    other: dict[str, list[Any]] = Field(default_factory=dict)
    """Other swept keys by dotted name, as JSON values: `{"train.batch_size": [8, 16]}`."""


INDIFFERENCE_ZONE = 0.05
"""Default of `indifference_zone`."""


def _margin(given: object) -> object:
    return given if given is None or isinstance(given, QualityMargin) else QualityMargin.parse(given)


class Study(StrictModel):
    """A whole sweep, as its file describes it."""

    name: str
    """Name of the study and of its results folder, studies/NAME. By default, the name of the file."""
    task: str
    """What is trained: a built-in task such as "unet" or "cnn", a model of Keras ("keras:EfficientNetV2B0"),
    or the path of your own Python file."""
    engine: tuple[EngineName, ...] = (DEFAULT_ENGINE,)
    """The framework; a list compares several. "native", "single" and "virtual" are then strategies of each of
    them. By default, each strategy uses the engine that it belongs to."""
    quality_margin: Annotated[
        QualityMargin | None, BeforeValidator(_margin), PlainSerializer(lambda margin: margin and margin.key)
    ] = Field(default=None, examples=[0.01, "2 %"])
    """How much worse than one worker's the quality may be to count as no worse: in units of the metric, or as
    a percentage. By default, a rule for the metric."""
    indifference_zone: float = Field(default=INDIFFERENCE_ZONE, ge=0, lt=1)
    """A cost efficiency this close to the target is as good as the target: its row may be chosen or not, and
    the choice counts as settled."""
    data: DataSettings = DataSettings()
    train: TrainSettings = TrainSettings()
    sweep: SweepSettings = SweepSettings()
    launch: LaunchSettings = LaunchSettings()
    _place: KeyLines = PrivateAttr(default_factory=KeyLines)

    @property
    def place(self) -> KeyLines:
        """File and lines of its keys."""
        return self._place

    @cached_property
    def brought(self) -> TaskDefaults:
        """What its task file brings; the file is read once."""
        return task_defaults(self.task)

    def placed(self, place: KeyLines, brought: TaskDefaults) -> "Study":
        """Return this study with the file and lines of its keys, and what its task file brings."""
        copy = self.model_copy()
        copy._place, copy.__dict__["brought"] = place, brought
        return copy

    def with_data(self, **keys: str) -> "Study":
        """Return this study with other data settings."""
        return self.model_copy(update={"data": self.data.model_copy(update=keys)})


def read_text(path: Path) -> str:
    """Read the text of a study file; raises UserError if it cannot be read."""
    try:
        data = contents(path, LARGEST)
        if path.suffix in OTHERS:
            what, action = OTHERS[path.suffix]
            raise UserError("a study file (.toml)", f"{path}, {what}", action.format(path))
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            action = "Save it as UTF-8, which Windows Notepad offers in `Save as`."
            raise UserError("a text file in UTF-8", f"{path}, which is UTF-16", action)
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        action = f"Write one with `scalestudy init {path}`."
        raise UserError("a study file", f"{path}, which does not exist", action) from None
    except IsADirectoryError:
        action = "Name the .toml file; `status` and `report` take folders."
        raise UserError("a study file", f"{path}, which is a folder", action) from None
    except OSError as error:
        raise explained(error) or error from None
    except ValueError as error:
        raise UserError("a readable text file (UTF-8)", f"{path}: {error}", "Save it as UTF-8.") from None


def toml_table(text: str, file: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        UserError: The text is not TOML (the error names the line), or is nested too deeply.
    """
    try:
        if _LONG_KEY.search(text):
            raise RecursionError
        table = tomllib.loads(text)
        _refuse_deep(table)
    except RecursionError:
        expected = f"lists and tables nested at most {DEEPEST} times in {file}"
        raise UserError(expected, "more", "Correct the file.") from None
    except ValueError as error:
        message = str(error).replace("(at end of document)", f"(at line {len(text.splitlines())})")
        what, _, place = message.rpartition(" (at ")
        if not what:  # an integer with thousands of digits, which Python does not parse
            what, place = message, "somewhere"
        action = 'Correct the line: keys read `name = value`, strings are "quoted", lists are [1, 2].'
        if "\\" in what or "hex value" in what:  # \d or \u in a Windows path
            action = "Write / in paths, or put the string in '...', where a backslash is literal."
        received = f"{what[:1].lower()}{what[1:]} ({file}, {place.removesuffix(')')})"
        raise UserError("valid TOML", received, action) from None
    return table


def _refuse_deep(value: Any, left: int = DEEPEST + 1) -> None:
    if left < 0:
        raise RecursionError
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_deep(inner, left - 1)
