"""A panel's profile: a Jinja template of its page, with a head in TOML, that people can read and change."""

import re
from collections.abc import Iterator
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scalestudy.features.proposal.facts import FACTS
from scalestudy.study.file import read_text, toml_table
from scalestudy.study.keys import suggestion
from scalestudy.study.record_file import first_error
from scalestudy.util.errors import UserError

FUNCTIONS = ("table", "figure", "doublings", "request", "gpus", "environment")
"""What puts more than words on the page."""
HEAD = "+++\n"
ENDING = ".md.j2"
QUALITY = """

## Quality

{# The quality of the model #}
{{ quality }} on {{ workers }}: {{ verdict }}.
"""
"""What is on every page, asked for or not."""
ASKED = re.compile(r"\{#\s*(.*?)\s*#\}\s*", re.DOTALL)
Text = Annotated[str, Field(min_length=1)]


class PanelSource(BaseModel):
    """A page or document that was read: its address, when, and what it asks for in a sentence."""

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
    """Of the page."""
    unit: Text
    """What is requested: "CU", "GPU-h", "node-hours"."""
    base: Literal["device", "node"] = "device"
    """What an hour is counted of: each worker's device, or whole nodes."""
    charge: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Units that an hour of the base costs; `--charge` overrides it."""
    sources: Annotated[tuple[PanelSource, ...], Field(min_length=1)]
    assumed: tuple[str, ...] = ()
    """What the sources do not say, and this profile takes for granted."""
    body: Text
    """The template: titles and parts, with an empty line between any two."""

    def sections(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Each section's title, and its parts: what the panel asks for, and the template of the answer."""
        body = self.body + ("" if "verdict" in self.body else QUALITY)
        for section in re.split(r"^## ", body, flags=re.MULTILINE)[1:]:
            title, _, text = section.partition("\n")
            parts = []
            for part in filter(None, map(str.strip, re.split(r"\n\s*\n", text))):
                asked = ASKED.match(part)
                parts.append((asked[1], part[asked.end() :]) if asked else (title, part))
            yield title.strip(), parts


def shipped_panels() -> dict[str, str]:
    """Texts of the panels that come with the package, by name."""
    folder = files("scalestudy.features.proposal") / "panels"
    return dict(sorted((file.name.removesuffix(ENDING), file.read_text()) for file in folder.iterdir()))


def find_panel(name: str) -> Panel:
    """The panel of this name, or of this file (with a slash, or ending in .j2).

    Raises:
        UserError: There is none, or something in it is not right.
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
    """A panel from its file's text; `file` is its name, for messages.

    Raises:
        UserError: Something in it is not right.
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
