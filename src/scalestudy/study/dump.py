"""A study as the text of a study file."""

from typing import Any

from scalestudy.study.file import Study
from scalestudy.study.keys import SECTIONS, SWEEP_KEYS, shown


def study_toml(study: Study) -> str:
    """The study file that reads as `study`, with the keys that differ from their defaults."""
    lines = [f"name = {shown(study.name)}", f"task = {_written(study.task)}", "", "[sweep]"]
    sweep = study.sweep.model_dump(mode="json")
    lines += [f"{key} = {_written(sweep[key])}" for key in SWEEP_KEYS]
    lines += [f'"{name}" = {_written(values)}' for name, values in study.sweep.other.items()]
    for section in SECTIONS:
        given = getattr(study, section).model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        if given:
            lines += ["", f"[{section}]", *(f"{key} = {_written(value)}" for key, value in given.items())]
    return "\n".join(lines) + "\n"


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return shown(value.replace("$", "$$")) if isinstance(value, str) else shown(value)
