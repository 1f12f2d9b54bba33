"""What a panel asks for, as its file says: a small TOML file that people can read, copy and change."""

import re
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from scalestudy.features.proposal.columns import COLUMNS
from scalestudy.features.proposal.facts import FACTS
from scalestudy.report.against_workers import efficiency, speedup
from scalestudy.report.bars import phases
from scalestudy.study.file import read_text, toml_table
from scalestudy.study.keys import suggestion
from scalestudy.study.record_file import first_error
from scalestudy.util.errors import UserError

NAMED = re.compile(r"\{([a-z_0-9]*)\}")
"""A fact's name in a sentence."""
FIGURES = {
    "speedup": speedup, "speedup-training": speedup, "efficiency": efficiency, "phases": phases,
}  # fmt: skip
"""Figures that a panel may ask for, each with what makes all of its group."""
KINDS = ("text", "table", "figure", "doublings", "request", "gpus", "environment")
Text = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class PanelSource(_Table):
    """Where it stands what the panel asks for."""

    address: Text
    """Of the page or document that was read."""
    read: date
    """When."""
    says: str = ""
    """What it asks for, in a sentence."""


class PanelPart(_Table):
    """One thing on the page: just one of `KINDS`."""

    text: str | None = None
    """A sentence; a fact's name in braces stands for its value: "On {workers} the speed-up is {speedup}."."""
    table: tuple[str, ...] = ()
    """Columns of a table, a row for each number of workers."""
    figure: str | None = None
    """A figure of the report, by its name."""
    doublings: Annotated[float, Field(gt=1)] | None = None
    """How much faster a training must be on twice the workers, shown for every doubling."""
    request: bool = False
    """The arithmetic of the request."""
    gpus: bool = False
    """What each GPU did in a run on the workers that are requested."""
    environment: bool = False
    """Hardware and software that the runs recorded."""
    asks: str = ""
    """What the panel asks for here, in words: said where the study cannot support it."""
    caption: str = ""
    """Of a table."""

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        return next(name for name in KINDS if getattr(self, name))

    @model_validator(mode="after")
    def _is_known(self) -> "PanelPart":
        given = [name for name in KINDS if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"expected one of {', '.join(KINDS)}, got {' and '.join(given) or 'none'}")
        figures = [self.figure] if self.figure else []
        names = (
            ("fact", NAMED.findall(self.text or ""), FACTS),
            ("column", self.table, COLUMNS),
            ("figure", figures, FIGURES),
        )
        for kind, used, known in names:
            for name in used:
                if name not in known:
                    close = suggestion(name, known)
                    meant = f"; did you mean {close}?" if close else ""
                    raise ValueError(f"there is no {kind} `{name}`{meant}")
        return self


class PanelSection(_Table):
    """Parts under a title."""

    title: Text
    parts: Annotated[tuple[PanelPart, ...], Field(min_length=1)]


class Panel(_Table):
    """A panel's profile."""

    panel: Text
    """Who asks: "ARCHER2 technical assessment"."""
    title: Text
    """Of the page."""
    unit: Text
    """What is requested: "CU", "GPU-h", "node-hours"."""
    base: Literal["device", "node"] = "device"
    """What an hour is counted of: each worker's device, or whole nodes."""
    charge: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Units that an hour of the base costs; `--charge` says another."""
    sources: Annotated[tuple[PanelSource, ...], Field(min_length=1)]
    assumed: tuple[str, ...] = ()
    """What the sources do not say, and this profile takes for granted."""
    sections: Annotated[tuple[PanelSection, ...], Field(min_length=1)]


def shipped_panels() -> dict[str, str]:
    """Texts of the panels that come with the package, by name."""
    folder = files("scalestudy.features.proposal") / "panels"
    return dict(sorted((file.name.removesuffix(".toml"), file.read_text()) for file in folder.iterdir()))


def find_panel(name: str) -> Panel:
    """The panel of this name, or of this file (with a slash, or ending in .toml).

    Raises:
        UserError: There is none, or something in it is not right.
    """
    if name.endswith(".toml") or "/" in name:
        path = Path(name).expanduser()
        return parse_panel(read_text(path), path.name)
    shipped = shipped_panels()
    if name not in shipped:
        close = suggestion(name, shipped)
        meant = f"Did you mean `{close}`? " if close else ""
        raise UserError(
            f"a panel out of {', '.join(shipped)}",
            f"{name!r}",
            f"{meant}Choose one with --panel, or name a file of your own: --panel ./mine.toml.",
        )
    return parse_panel(shipped[name], f"{name}.toml")


def parse_panel(text: str, file: str) -> Panel:
    """A panel from its file's text.

    Args:
        text: TOML.
        file: Its name, for messages.

    Raises:
        UserError: Something in it is not right.
    """
    try:
        return Panel.model_validate(toml_table(text, file))
    except ValidationError as error:
        raise UserError(
            "a panel file with valid keys", f"{file}: {first_error(error)}", "See docs/proposal.md for each."
        ) from None
