"""A review panel's profile: a Jinja template of the page with a TOML header, which users can edit."""

import re
from collections.abc import Iterator
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scalestudy.config.toml_text import read_text, toml_table
from scalestudy.store.record_file import first_error
from scalestudy.util.errors import UserError

HEAD = "+++\n"
ENDING = ".md.j2"
ASKED = re.compile(r"\{#\s*(.*?)\s*#\}\s*", re.DOTALL)
"""The comment before a part of a template: what the panel asks for there."""
Text = Annotated[str, Field(min_length=1)]


class PanelSource(BaseModel):
    """A page or document of the panel: its address, when it was read, and its requirements in a sentence."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: Text
    read: date
    says: str = ""


class Panel(BaseModel):
    """A panel's profile."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )

    panel: Text
    """Who asks: "ARCHER2 technical assessment"."""
    title: Text
    """Title of the page."""
    unit: Text
    """Unit of the request: "CU", "GPU-h", "node-hours"."""
    base: Literal["device", "node"] = "device"
    """What hours are counted for: each worker's device, or whole nodes."""
    charge: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Units charged for an hour of the base; `--charge` overrides it."""
    # Calls change: a page without its sources could not be checked.
    sources: Annotated[tuple[PanelSource, ...], Field(min_length=1)]
    assumed: tuple[str, ...] = ()
    """Assumptions of this profile that the sources do not state."""
    body: Text
    """Template: titles and parts, separated by empty lines."""

    def sections(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield each section's title and parts: the panel's question, and the template of the answer."""
        # What stands before the first title belongs to no section.
        for section in re.split(r"^## ", self.body, flags=re.MULTILINE)[1:]:
            title, _, text = section.partition("\n")
            parts = []
            for block in re.split(r"\n\s*\n", text):
                part = block.strip()
                if not part:
                    continue
                asked = ASKED.match(part)
                if asked:
                    parts.append((asked[1], part[asked.end() :]))
                else:
                    parts.append((title, part))
            yield title.strip(), parts


def shipped_panels() -> dict[str, str]:
    """Return the texts of the panel files in this package, by name."""
    folder = files("scalestudy.features.proposal") / "panels"
    texts = {}
    for file in folder.iterdir():
        texts[file.name.removesuffix(ENDING)] = file.read_text()
    # `iterdir` has no order of its own.
    return dict(sorted(texts.items()))


def find_panel(name: str) -> Panel:
    """Return the panel with this name, or in this file if `name` has a slash or ends in .j2.

    Raises:
        UserError: There is no such panel, or it is invalid.
    """
    if name.endswith(".j2") or "/" in name:
        path = Path(name).expanduser()
        return parse_panel(read_text(path), path.name)
    shipped = shipped_panels()
    if name not in shipped:
        action = (
            f"Choose one with --panel, or name your own file: --panel ./mine{ENDING}."
        )
        raise UserError(f"one of the panels {', '.join(shipped)}", f"{name!r}", action)
    return parse_panel(shipped[name], f"{name}{ENDING}")


def parse_panel(text: str, file: str) -> Panel:
    """Parse the text of a panel file; `file` is its name, for messages.

    Raises:
        UserError: The panel is invalid.
    """

    def refused(why: str) -> UserError:
        action = "`scalestudy docs reference/panels` explains its parts."
        return UserError("a valid panel file", f"{file}: {why}", action)

    parts = text.split(HEAD)
    if len(parts) != 3 or parts[0].strip():
        raise refused("it does not begin with a head between two lines of +++")
    _, head, body = parts
    settings = toml_table(head, file)
    try:
        return Panel.model_validate(settings | {"body": body})
    except ValidationError as error:
        raise refused(first_error(error)) from None
