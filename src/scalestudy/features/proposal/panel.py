"""What a panel asks for, as its file says: a small TOML file that people can read, copy and change."""

import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from scalestudy.study.file import read_text, toml_table
from scalestudy.study.keys import shown, suggestion
from scalestudy.study.lines import line_numbers
from scalestudy.util.errors import UserError

NAMED = re.compile(r"\{([a-z_0-9]*)\}")
"""A fact's name in a sentence."""
Text = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Source(_Table):
    """Where it stands what the panel asks for."""

    address: Text
    """Of the page or document that was read."""
    read: date
    """When."""
    says: str = ""
    """What it asks for, in a sentence."""


class Part(_Table):
    """One thing on the page: just one of `KINDS`."""

    text: str | None = None
    """A sentence; a fact's name in braces stands for its value: "On {workers} workers ..."."""
    table: tuple[str, ...] = ()
    """Columns of a table, a row for each number of workers."""
    figure: str | None = None
    """A figure of the report, by its name: "speedup", "efficiency", ..."""
    doublings: Annotated[float, Field(gt=1)] | None = None
    """How much faster a training must be on twice the workers, shown for every doubling."""
    request: bool = False
    """The arithmetic of the request."""
    gpus: bool = False
    """What each GPU did in a run on the workers that are asked for."""
    environment: bool = False
    """Hardware and software that the runs recorded."""
    asks: str = ""
    """What the panel asks for here, in words: said where the study cannot support it."""
    needs: tuple[str, ...] = ()
    """Facts that must be known besides those in the text."""
    caption: str = ""
    """Of a table."""

    @model_validator(mode="after")
    def _one_thing(self) -> "Part":
        given = [name for name in KINDS if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"one of {', '.join(KINDS)}, not {' and '.join(given) or 'none of them'}")
        return self


KINDS = ("text", "table", "figure", "doublings", "request", "gpus", "environment")


class Section(_Table):
    """Parts under a title."""

    title: Text
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]


class Panel(_Table):
    """A panel's profile. `name` is its file's."""

    name: str = ""
    panel: Text
    """Who asks: "ARCHER2 technical assessment"."""
    title: Text
    """Of the page."""
    unit: Text
    """What is asked for: "CU", "GPU-h", "node-hours"."""
    base: Literal["device", "node"] = "device"
    """What an hour is counted of: each worker's device, or whole nodes."""
    charge: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Units that an hour of the base costs; `--charge` says another."""
    sources: Annotated[tuple[Source, ...], Field(min_length=1)]
    assumed: tuple[str, ...] = ()
    """What the sources do not say, and this profile takes for granted."""
    sections: Annotated[tuple[Section, ...], Field(min_length=1)]


def parse_panel(text: str, file: str, known: dict[str, tuple[str, ...]]) -> Panel:
    """A panel from its file's text.

    Args:
        text: TOML.
        file: Its name, for messages; the panel's own is made of it.
        known: Names that a panel may use: "facts", "columns" and "figures".

    Raises:
        UserError: Naming the line of what is not right.
    """
    table = toml_table(text, file)
    lines = {".".join(map(str, at)): line for at, line in line_numbers(text).items()}
    try:
        panel = Panel.model_validate({"name": Path(file).stem, **table})
    except ValidationError as error:
        raise _refusal(error, file, lines) from None
    for name, kind, at in _used(panel):
        if name not in known[kind]:
            close = suggestion(name, known[kind])
            raise UserError(
                f"one of the {kind} that a panel may use",
                f'"{name}"{_place(file, lines, at)}',
                f"Did you mean `{close}`?" if close else f"Known: {', '.join(known[kind])}.",
            )
    return panel


def read_panel(path: Path, known: dict[str, tuple[str, ...]]) -> Panel:
    """A panel from a file.

    Raises:
        UserError: If it cannot be read, or naming the line of what is not right.
    """
    return parse_panel(read_text(path), path.name, known)


def _used(panel: Panel) -> list[tuple[str, str, tuple[str, ...]]]:
    """Name, kind and place of everything that the panel's parts refer to."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for s, section in enumerate(panel.sections):
        for p, part in enumerate(section.parts):
            at = ("sections", str(s), "parts", str(p))
            for name in [*NAMED.findall(part.text or ""), *part.needs]:
                found.append((name, "facts", at))
            found += [(name, "columns", at) for name in part.table]
            found += [(part.figure, "figures", at)] if part.figure else []
    return found


def _refusal(error: ValidationError, file: str, lines: dict[str, int]) -> UserError:
    # A key that is misspelt is also missing: the former tells more.
    first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    at = tuple(str(part) for part in first["loc"])
    key, where = at[-1] if at else "the panel", _place(file, lines, at)
    if first["type"] == "extra_forbidden":
        close = suggestion(key, [name for model in (Panel, Section, Part, Source) for name in _fields(model)])
        action = f"Did you mean `{close}`?" if close else "Remove it."
        return UserError("a known key of a panel file", f"`{key}`{where}", action)
    if first["type"] == "missing":
        return UserError(f"{'.'.join(at)} in a panel file", f"none{where}", "Add it.")
    what = str(first["msg"]).removeprefix("Value error, ")
    return UserError(f"{key} as a panel file has it: {what}", f"{_given(first)}{where}", "Correct it.")


def _given(first: Any) -> str:
    return "a part with other keys" if isinstance(first["input"], dict) else shown(first["input"])


def _fields(model: type[BaseModel]) -> list[str]:
    return list(model.model_fields)


def _place(file: str, lines: dict[str, int], at: tuple[str, ...]) -> str:
    """The line of a key, or of the nearest table around it."""
    for length in range(len(at), 0, -1):
        line = lines.get(".".join(at[:length]))
        if line is not None:
            return f" ({file}, line {line})"
    return f" ({file})"
