"""Write study files: the commented template of `scalestudy init`, generated from the models, and studies."""

import textwrap
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import tomli_w

from scalestudy.study.catalog import PREFIX, TASKS, task_defaults
from scalestudy.study.file import Study, SweepSettings
from scalestudy.study.keys import SECTIONS, SweptValue
from scalestudy.study.settings import StrictModel

_COMMENT = textwrap.TextWrapper(
    100, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
)
SWEPT = [key for key in SweepSettings.model_fields if key != "other"]


def study_template(task: str = "unet", values: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Text of a study file: a short runnable study, then every key with its default, commented out.

    Args:
        task: Built-in task, or the path of a Python file relative to the study file.
        values: Values to set, by dotted key: `{"sweep.workers": [1, 2], "train.epochs": 10}`.
    """
    names = ", ".join(f'"{name}"' for name in [*TASKS.names(), f"{PREFIX}EfficientNetV2B0"])
    margin, engine = Study.model_fields["quality_margin"], Study.model_fields["engine"]
    lines = [
        *comment(
            "A study: each combination of the values under [sweep] is a point, which is trained and measured."
        ),
        *comment("Run it with `scalestudy run FILE`, add --dry-run to see its points first."),
        "",
        *comment(f"Task: {names}, or the path of your own Python file."),
        toml_line("task", task),
        *comment(one_line(Study.model_fields["name"].description)),
        '# name = "study"',
        *comment(one_line(engine.description) + _choices(SweptValue, "engine")),
        toml_line("engine", values["engine"])
        if "engine" in values
        else f"# {toml_line('engine', task_defaults(task).engine or engine.get_default()[0])}",
        *comment(f"{one_line(margin.description)} Not set; for example:"),
        f"# {toml_line('quality_margin', (margin.examples or [None])[0])}",
        "",
        *_sweep(values),
        "",
        *comment(
            "All below is optional: each key is shown with its default (or an example where it has none). "
            "Remove its # to change it, or give it a list of values under [sweep] to compare them."
        ),
    ]
    for name, model in SECTIONS.items():
        lines += [
            "",
            *comment(one_line(model.__doc__).partition(".")[0] + "."),
            f"[{name}]",
            *_keys(name, task, values),
        ]
    return "\n".join(lines) + "\n"


def _sweep(values: Mapping[str, Any]) -> Iterator[str]:
    yield from comment(one_line(SweepSettings.__doc__))
    yield "[sweep]"
    for key in SWEPT:
        field = SweepSettings.model_fields[key]
        yield from comment(one_line(field.description) + _choices(SweptValue, key))
        yield toml_line(key, values.get(f"sweep.{key}", field.get_default()))


def _keys(section: str, task: str, values: Mapping[str, Any]) -> Iterator[str]:
    model, defaults = SECTIONS[section], task_defaults(task)
    brought = defaults.train | defaults.data | {"source": defaults.source}
    for key, field in model.model_fields.items():
        default, note = field.get_default(), ""
        if brought.get(key, default) != default:
            default, note = brought[key], " The task's default:"
        if default is None:
            default = (field.examples or [None])[0]
            note = " Not set; for example:"
        given = values.get(f"{section}.{key}")
        yield ""
        yield from comment(
            one_line(field.description) + _choices(model, key) + (note if given is None else "")
        )
        yield f"# {toml_line(key, default)}" if given is None else toml_line(key, given)


def _choices(model: type[StrictModel], key: str) -> str:
    schema = model.model_json_schema()["properties"][key]
    words = [word for part in schema.get("anyOf", [schema]) for word in part.get("enum", [])]
    return " Choices: " + ", ".join(f'"{word}"' for word in words) + "." if words else ""


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
