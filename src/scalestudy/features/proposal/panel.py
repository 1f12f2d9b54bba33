"""A review panel's profile: a Jinja template of its page with a TOML header, which users can edit."""

import re
from collections.abc import Iterator
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scalestudy.config.keys import suggestion
from scalestudy.config.toml_text import read_text, toml_table
from scalestudy.features.proposal.facts import FACTS
from scalestudy.store.record_file import first_error
from scalestudy.util.errors import UserError

FUNCTIONS = ("table", "figure", "doublings", "request", "gpus", "environment")
"""Template functions, which add tables, figures and other blocks to the page."""
HEAD = "+++\n"
ENDING = ".md.j2"
QUALITY = """

## Quality

{# The quality of the model #}
{{ quality }} on {{ workers }}: {{ verdict }}.
"""
"""Section added to every page that does not mention the verdict."""
ASKED = re.compile(r"\{#\s*(.*?)\s*#\}\s*", re.DOTALL)
Text = Annotated[str, Field(min_length=1)]


class PanelSource(BaseModel):
    """A page or document of the panel: its address, when it was read, and its requirements in a sentence."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: Text
    read: date
    says: str = ""


class Panel(BaseModel):
    """A panel's profile."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

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
    sources: Annotated[tuple[PanelSource, ...], Field(min_length=1)]
    assumed: tuple[str, ...] = ()
    """Assumptions of this profile that the sources do not state."""
    body: Text
    """Template: titles and parts, separated by empty lines."""

    def sections(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield each section's title and parts: the panel's question, and the template of the answer."""
        body = self.body + ("" if "verdict" in self.body else QUALITY)
        for section in re.split(r"^## ", body, flags=re.MULTILINE)[1:]:
            title, _, text = section.partition("\n")
            parts = []
            for part in filter(None, map(str.strip, re.split(r"\n\s*\n", text))):
                asked = ASKED.match(part)
                parts.append((asked[1], part[asked.end() :]) if asked else (title, part))
            yield title.strip(), parts


def shipped_panels() -> dict[str, str]:
    """Return the texts of the panel files in this package, by name."""
    folder = files("scalestudy.features.proposal") / "panels"
    return dict(sorted((file.name.removesuffix(ENDING), file.read_text()) for file in folder.iterdir()))


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
        close = suggestion(name, shipped)
        raise UserError(
            f"one of the panels {', '.join(shipped)}",
            f"{name!r}",
            (f"Did you mean `{close}`? " if close else "")
            + f"Choose one with --panel, or name your own file: --panel ./mine{ENDING}.",
        )
    return parse_panel(shipped[name], f"{name}{ENDING}")


def parse_panel(text: str, file: str) -> Panel:
    """Parse the text of a panel file; `file` is its name, for messages.

    Raises:
        UserError: The panel is invalid.
    """
    from jinja2 import TemplateError, meta
    from jinja2.sandbox import SandboxedEnvironment

    def refused(why: str) -> UserError:
        action = "docs/reference/panels.md explains its parts."
        return UserError("a valid panel file", f"{file}: {why}", action)

    parts = text.split(HEAD)
    if len(parts) != 3 or parts[0].strip():
        raise refused("it does not begin with a head between two lines of +++")
    try:
        panel = Panel.model_validate(toml_table(parts[1], file) | {"body": parts[2]})
        names = meta.find_undeclared_variables(SandboxedEnvironment().parse(panel.body))
    except ValidationError as error:
        raise refused(first_error(error)) from None
    except TemplateError as error:
        raise refused(f"{error}") from None
    known = [*FACTS, *FUNCTIONS, "study"]
    for name in sorted(names.difference(known)):
        close = suggestion(name, known)
        raise refused(f"there is no fact `{name}`" + (f"; did you mean {close}?" if close else ""))
    return panel
