"""Write studies, comments and values as lines of TOML."""

import textwrap
from collections.abc import Mapping
from typing import Any

import tomli_w

from scalestudy.config.file import INDIFFERENCE_ZONE, Study, SweepSettings
from scalestudy.config.keys import SECTIONS

_COMMENT = textwrap.TextWrapper(
    100, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
)
SWEPT = [key for key in SweepSettings.model_fields if key != "other"]


def one_line(text: str | None) -> str:
    """Replace line breaks by spaces."""
    return " ".join((text or "").split())


def comment(text: str) -> list[str]:
    """Wrap a text into lines of a TOML comment."""
    return _COMMENT.wrap(text)


def study_toml(study: Study) -> str:
    """Write a study as a study file, with the keys that differ from their defaults."""
    lines = [toml_line("name", study.name), toml_line("task", _escaped(study.task))]
    lines += [toml_line("quality_margin", study.quality_margin.key)] if study.quality_margin else []
    if study.indifference_zone != INDIFFERENCE_ZONE:
        lines.append(toml_line("indifference_zone", study.indifference_zone))
    lines += ["", "[sweep]"]
    sweep = study.sweep.model_dump(mode="json")
    swept = {key: sweep[key] for key in SWEPT} | dict(study.sweep.other)
    lines += [toml_line(key, _escaped(values)) for key, values in swept.items()]
    for section in SECTIONS:
        given = getattr(study, section).model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        if given:
            lines += ["", f"[{section}]", *(toml_line(key, _escaped(value)) for key, value in given.items())]
    return "\n".join(lines) + "\n"


def _escaped(value: Any) -> Any:
    # A study file expands $VARIABLES, so a literal dollar is doubled.
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


def toml_line(key: str, value: Any) -> str:
    """`key = value`, with the key quoted if necessary."""
    written = tomli_w.dumps({key: 0}).removesuffix(" = 0\n")
    return f"{written} = {toml_value(value)}"


def toml_value(value: Any) -> str:
    """Write a value on one line; tomli-w would put each item of an array on its own line.

    Raises:
        TypeError: TOML has no such value (None).
    """
    if isinstance(value, Mapping):
        inside = ", ".join(toml_line(key, inner) for key, inner in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").removesuffix("\n")
