"""A study as the text of a study file."""

from typing import Any

from scalestudy.study.file import Study
from scalestudy.study.keys import SECTIONS, SWEEP_KEYS
from scalestudy.study.toml import toml_line


def study_toml(study: Study) -> str:
    """The study file that reads as `study`, with the keys that differ from their defaults."""
    lines = [toml_line("name", study.name), toml_line("task", _escaped(study.task))]
    lines += [toml_line("quality_margin", study.quality_margin.key)] if study.quality_margin else []
    lines += ["", "[sweep]"]
    sweep = study.sweep.model_dump(mode="json")
    swept = {key: sweep[key] for key in SWEEP_KEYS} | dict(study.sweep.other)
    lines += [toml_line(key, _escaped(values)) for key, values in swept.items()]
    for section in SECTIONS:
        given = getattr(study, section).model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        if given:
            lines += ["", f"[{section}]", *(toml_line(key, _escaped(value)) for key, value in given.items())]
    return "\n".join(lines) + "\n"


def _escaped(value: Any) -> Any:
    # A study file fills in $VARIABLES; a dollar that is meant is doubled.
    if isinstance(value, list | tuple):
        return [_escaped(each) for each in value]
    return value.replace("$", "$$") if isinstance(value, str) else value
