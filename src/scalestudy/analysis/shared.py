"""The shared file: a JSON document with a study's finished runs, which `compare` and `report` can open."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError, field_validator, model_validator

from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.findings import Findings, analyse, rate_rule
from scalestudy.analysis.price import Bill
from scalestudy.analysis.runs import Run
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.store.record_file import first_error
from scalestudy.store.records import EpochRecord, RankRecord, Record, Result
from scalestudy.util.errors import UserError, explain
from scalestudy.util.files import contents
from scalestudy.util.printable import printable

MARK = "scalestudy_share"
"""First key of the document."""
FACTS = ("Host", "Kernel", "Environment", "Variables")
"""Facts about machines that a study's records hold and a shared file leaves out."""


class SharedRun(Record):
    """A finished run."""

    result: Result
    epochs: dict[str, Any]
    """A list for each value with one entry per epoch; under "validation", one list for each metric."""
    ranks: list[RankRecord]

    @model_validator(mode="after")
    def _check(self) -> "SharedRun":
        try:
            datetime.fromisoformat(self.result.finished)
        except ValueError as error:
            raise ValueError(f"result.finished: {error}") from None
        metrics = self.epochs.get("validation", {})
        if not isinstance(metrics, dict):
            raise ValueError(
                f"epochs.validation: not an object with a list for each metric: {metrics!r:.50}"
            )
        columns = dict(self.epochs)
        columns.pop("validation", None)
        for name, values in metrics.items():
            columns[f"validation.{name}"] = values
        # Columns of unequal length would give an epoch the values of another.
        epochs = self.epochs.get("epoch")
        count = 0
        if isinstance(epochs, list):
            count = len(epochs)
        for name, values in columns.items():
            if not isinstance(values, list) or len(values) != count:
                raise ValueError(
                    f"epochs.{name}: not a list of a value for each of {count} epochs"
                )
        try:
            _epochs(self.epochs)
        except ValidationError as error:
            raise ValueError(f"epochs.{first_error(error)}") from None
        return self


class SharedStudy(Record):
    """The shared document."""

    scalestudy_share: Literal[1]
    about: str
    """What this file is, for people who open it."""
    study: str
    """The task's name if it is a built-in task."""
    bill: Bill
    margin: float | str | None
    points: dict[str, int]
    """Number of the study's points by state."""
    asked: dict[str, Any]
    """Settings by dotted key."""
    withheld: list[str]
    """Keys whose values are left out because they hold names."""
    runs: list[SharedRun]

    @field_validator("margin")
    @classmethod
    def _is_margin(cls, margin: float | str | None) -> float | str | None:
        try:
            if margin is not None:
                QualityMargin.parse(margin)
        except ValueError as error:
            raise ValueError(f"{margin!r}, not {error}") from None
        return margin

    def text(self) -> str:
        """Serialise as JSON."""
        return self.model_dump_json(exclude_defaults=True, indent=1) + "\n"

    def findings(self, target_quality: float | None = None) -> Findings:
        """Analyse the runs like those of a study's folder."""
        tuned = any("train.learning_rate" in run.result.swept for run in self.runs)
        scaling = str(self.asked.get("train.learning_rate_scaling"))
        runs = []
        for run in self.runs:
            runs.append(Run(run.result, _epochs(run.epochs), None, tuple(run.ranks)))
        margin = None
        if self.margin is not None:
            margin = QualityMargin.parse(self.margin)
        return analyse(
            self.study,
            runs,
            criteria=Criteria(bill=self.bill, margin=margin),
            target_quality=target_quality,
            rate_rule=rate_rule(scaling, tuned=tuned),
        )

    @property
    def not_known(self) -> frozenset[str]:
        """Settings and facts that the study has but this file leaves out."""
        return frozenset((*self.withheld, *FACTS))


def is_shared(path: Path) -> bool:
    """Whether a file is a shared study."""
    try:
        # The mark is the first key of the document, so that no large file is read whole.
        with path.open("rb") as file:
            return f'"{MARK}"'.encode() in file.read(200)
    except OSError:
        return False


def read_shared(path: Path) -> SharedStudy:
    """Read a shared file.

    Raises:
        UserError: It cannot be read, is damaged, or comes from a newer version.
    """
    name = printable(str(path))
    try:
        document = json.loads(contents(path))
        # The file comes from somebody else: its names must not move a terminal's cursor.
        _refuse_controls(document, "")
        return SharedStudy.model_validate(document)
    # Brackets nested a thousand deep are what a hostile file may hold.
    except (ValueError, RecursionError) as error:
        why = str(error)
        if isinstance(error, ValidationError):
            # Pydantic's own text is a page of every error with links.
            why = first_error(error)
        seen = f"{name}: {printable(why)}"
        action = (
            "Ask for the file again; one of a newer version needs a newer Scalestudy."
        )
        raise UserError(
            "a file that `scalestudy report --share` wrote",
            seen,
            action,
        ) from error
    except OSError as error:
        raise explain(error) or error from None


def _refuse_controls(value: Any, key: str) -> None:
    """Raise ValueError for control characters in a text of a file from somebody else."""
    if isinstance(value, str) and printable(value) != value:
        raise ValueError(f"{key}: control characters in {value[:50]!r}")
    if isinstance(value, dict):
        for name, inside in value.items():
            _refuse_controls(name, key)
            inner = name
            if key:
                inner = f"{key}.{name}"
            _refuse_controls(inside, inner)
    if isinstance(value, list):
        for place, inside in enumerate(value):
            _refuse_controls(inside, f"{key}.{place}")


def _epochs(columns: dict[str, Any]) -> tuple[EpochRecord, ...]:
    """The epochs from a list for each value; values that an epoch lacks are null."""
    epochs = []
    metrics = columns.get("validation", {})
    for place in range(len(columns.get("epoch", ()))):
        row: dict[str, Any] = {"validation": {}}
        for name, values in columns.items():
            if name != "validation" and values[place] is not None:
                row[name] = values[place]
        for name, values in metrics.items():
            if values[place] is not None:
                row["validation"][name] = values[place]
        epochs.append(EpochRecord.model_validate(row))
    return tuple(epochs)
