"""From the text of a study file to a `Study`; everything wrong in it is refused with its line."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from scalestudy.study import keys
from scalestudy.study.catalog import PREFIX, TASKS, applications, is_application
from scalestudy.study.engines import DEFAULT, engine_names, engine_traits
from scalestudy.study.file import Study, read_text, toml_table
from scalestudy.study.lines import KeyLines, line_numbers
from scalestudy.study.quality_margin import QualityMargin
from scalestudy.study.strategies import swept_names, traits
from scalestudy.study.variables import PLAIN, UndefinedVariable, expanded, is_plain
from scalestudy.util.errors import UserError

_INIT = "`scalestudy init` shows every key with its default."


def parse_study(text: str, path: Path) -> Study:
    """The study that `text` describes.

    Args:
        text: Contents of a study file.
        path: Its place, for messages, for the study's name, and for the task's relative path.

    Raises:
        UserError: Naming the file and the line.
    """
    table = toml_table(text, path.name)
    place = KeyLines(path.name, {_dotted(at): line for at, line in line_numbers(text).items()})
    return _Parser(path, place).study(table)


def study_of(table: dict[str, Any], path: Path) -> Study:
    """The study that a table describes, as if read from `path`, though messages name no line.

    Raises:
        UserError: For anything that is not right in it.
    """
    return _Parser(path, KeyLines()).study(table)


class _Parser:
    def __init__(self, path: Path, place: KeyLines) -> None:
        self.path = path
        self.place = place

    def study(self, table: dict[str, Any]) -> Study:
        for key in table:
            if key not in keys.TOP_KEYS:
                self._unknown(key, key, "", keys.TOP_KEYS)
        sections = {name: self._section(name, self._table(table, name)) for name in keys.SECTIONS}
        sweep = self._sweep(self._table(table, "sweep"))
        self._one_warmup(sections["train"])
        engine = self._engine(table)
        own = {
            "name": self._name(table), "task": self._task(table), "engine": engine,
            "quality_margin": self._margin(table),
        }  # fmt: skip
        sweep.setdefault("strategy", [engine_traits(engine).default_strategy])
        self._of_one_engine(engine, sweep["strategy"])
        study = Study.model_validate({**own, "sweep": sweep, **sections})
        return study.placed(self.place)

    def _table(self, table: dict[str, Any], name: str) -> dict[str, Any]:
        found = table.get(name, {})
        if not isinstance(found, dict):
            self._wrong(
                f"a section [{name}]", found, name, f"Write [{name}] on a line of its own, its keys below."
            )
        return found

    def _section(self, section: str, table: dict[str, Any]) -> dict[str, Any]:
        for key in table:
            if key not in keys.SECTIONS[section].model_fields:
                self._unknown(key, f"{section}.{key}", section, tuple(keys.SECTIONS[section].model_fields))
        return {
            key: self._value(f"{section}.{key}", value, f"{section}.{key}") for key, value in table.items()
        }

    def _sweep(self, table: dict[str, Any]) -> dict[str, Any]:
        own: dict[str, Any] = {}
        other: dict[str, list[Any]] = {}
        lines: dict[str, int] = {}
        for written, given in _flattened(table):
            at = f"sweep.{written}"
            if written in keys.SWEEP_KEYS:
                own[written] = self._list(written, given, at)
                continue
            name = keys.full_name(written)
            if name is None:
                known = (
                    *keys.SWEEP_KEYS,
                    *(key for model in keys.SECTIONS.values() for key in model.model_fields),
                )
                self._unknown(written, at, "sweep", known)
            if name in other:
                self._wrong(f"{name} once in [sweep]", "it twice", at, "Keep one of the two.", literal=True)
            other[name] = self._list(name, given, at)
            if at in self.place.lines:
                lines[f"sweep.{name}"] = self.place.lines[at]
        self.place.lines.update(lines)
        return {**own, "other": other}

    def _list(self, name: str, given: Any, at: str) -> list[Any]:
        values = given if isinstance(given, list) and not self._is_value(name, given) else [given]
        if not values:
            self._wrong(
                f"at least one value for {name} in [sweep]", [], at, "Give it values, or remove the key."
            )
        seen: list[Any] = []
        for index, value in enumerate(values):
            item = f"{at}[{index}]"
            valid = self._value(name, value, item if item in self.place.lines else at)
            if valid in seen:
                self._wrong(f"each value of {name} once", value, item, "Remove the repeated value.")
            seen.append(valid)
        return seen

    def _is_value(self, name: str, given: Any) -> bool:
        """Whether a list is itself one value of the key, as a pair is for image_size."""
        if name in keys.SWEEP_KEYS:
            return False
        try:
            keys.checked(name, given)
        except keys.WrongValue:
            return False
        return True

    def _value(self, name: str, value: Any, at: str) -> Any:
        value = self._expanded(value, name, at)
        if name == "train.weights" and isinstance(value, str) and value not in ("imagenet", "none"):
            value = str((self.path.absolute().parent / Path(value).expanduser()).resolve())
        try:
            return keys.checked_sweep(name, value) if name in keys.SWEEP_KEYS else keys.checked(name, value)
        except keys.WrongValue as wrong:
            self._wrong(f"{wrong} for {name}", value, at, wrong.action or _repair(name, value))

    def _expanded(self, value: Any, name: str, at: str) -> Any:
        if isinstance(value, list):
            return [self._expanded(item, name, at) for item in value]
        if not isinstance(value, str):
            return value
        if not is_plain(value):
            self._wrong(f"{PLAIN} for {name}", value, at, "Correct the text.")
        try:
            return expanded(value)
        except UndefinedVariable as undefined:
            action = f"Run `export {undefined}=...` first, or write the value itself ($$ for a plain $)."
            self._wrong(
                f"the environment variable {undefined}, which {name} uses, to be set", value, at, action
            )

    def _name(self, table: dict[str, Any]) -> str:
        name = self._expanded(table.get("name", self.path.stem), "name", "name")
        if not isinstance(name, str) or not re.fullmatch(r"[^\W_][\w .,+=@-]{0,99}", name):
            self._wrong(
                "a name that can name a folder (letters, digits and .,+=@-, a letter or digit first)",
                name,
                "name",
                'Write name = "my-study".',
            )
        return name

    def _task(self, table: dict[str, Any]) -> str:
        names = ", ".join(f'"{name}"' for name in TASKS.names()) + f', "{PREFIX}MODEL"'
        if "task" not in table:
            self._wrong(
                "a task at the top of the file", "none", "task", 'Write task = "unet" first.', literal=True
            )
        task = self._expanded(table["task"], "task", "task")
        if not isinstance(task, str):
            self._wrong(
                f"{names} or the path of a Python file for task", task, "task", 'Write task = "unet".'
            )
        if task in TASKS:
            return task
        if is_application(task):
            self._application(task)
            return task
        if not task.endswith(".py"):
            close = keys.suggestion(task, TASKS.names())
            action = f'Did you mean "{close}"?' if close else "Name a task, or a file ending in .py."
            self._wrong(f"{names} or the path of a Python file for task", task, "task", action)
        file = (self.path.absolute().parent / task).resolve()
        if not file.is_file():
            action = "Correct the path: it is taken relative to the study file."
            self._wrong("the file of the task", f"{file}, which does not exist", "task", action, literal=True)
        return str(file)

    def _application(self, task: str) -> None:
        name, known = task.removeprefix(PREFIX), applications()
        if known and name not in known:
            close = keys.suggestion(name, known)
            action = f'Did you mean "{PREFIX}{close}"?' if close else f"There are {', '.join(known)}."
            self._wrong(f"a model of keras.applications after {PREFIX}", name, "task", action)

    def _engine(self, table: dict[str, Any]) -> str:
        engine = self._expanded(table.get("engine", DEFAULT), "engine", "engine")
        names = engine_names()
        if engine not in names:
            expected = " or ".join(f'"{name}"' for name in names)
            self._wrong(f"{expected} for engine", engine, "engine", f'Write engine = "{DEFAULT}".')
        return str(engine)

    def _of_one_engine(self, engine: str, strategies: list[str]) -> None:
        for strategy in strategies:
            if traits(strategy).engine != engine:
                ours = ", ".join(name for name in swept_names() if traits(name).engine == engine)
                self._wrong(
                    f"strategies of the engine {engine}: {ours}", strategy, "sweep.strategy",
                    f'Take one of these, or write engine = "{traits(strategy).engine}".',
                )  # fmt: skip

    def _margin(self, table: dict[str, Any]) -> QualityMargin | None:
        key = "quality_margin"
        if key not in table:
            return None
        try:
            return QualityMargin.parse(table[key])
        except ValueError as error:
            action = 'Write quality_margin = 0.01, or quality_margin = "2 %".'
            self._wrong(f"{error} for {key}", table[key], key, action)

    def _one_warmup(self, train: dict[str, Any]) -> None:
        if train.get("warmup_steps") and train.get("warmup_epochs"):
            self._wrong(
                "one of train.warmup_steps and train.warmup_epochs",
                "both",
                "train.warmup_epochs",
                "Remove one of the two.",
                literal=True,
            )

    def _unknown(self, key: str, at: str, section: str, known: tuple[str, ...]) -> NoReturn:
        inside = f"[{section}]" if section else "the top of the file"
        self._wrong(f"a known key in {inside}", f"`{key}`", at, _meant(key, section, known), literal=True)

    def _wrong(
        self, expected: str, received: Any, at: str, action: str, *, literal: bool = False
    ) -> NoReturn:
        seen = received if literal else keys.shown(received)
        raise UserError(expected, f"{seen}{self.place.of(at, at.partition('[')[0])}", action)


def _dotted(at: tuple[str | int, ...]) -> str:
    text = ""
    for part in at:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _flattened(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _meant(key: str, section: str, known: tuple[str, ...]) -> str:
    """What the writer of an unknown key probably meant: a key of this section, or of another one."""
    if section and key in keys.TOP_KEYS:
        return f"`{key}` belongs at the top of the file, before the first [section]."
    owners = [name for name, model in keys.SECTIONS.items() if key in model.model_fields and name != section]
    owners += ["sweep"] if key in keys.SWEEP_KEYS and section != "sweep" else []
    if owners:
        return f"`{key}` belongs in [{owners[0]}]."
    close = keys.suggestion(key.rpartition(".")[2] if section == "sweep" else key, known)
    if close:
        return f"Did you mean `{close}`?"
    for name, model in {**keys.SECTIONS}.items():
        close = keys.suggestion(key, model.model_fields)
        if close:
            return f"Did you mean `{close}` in [{name}]?"
    return _INIT


def _repair(name: str, value: Any) -> str:
    words = keys.choices(name)
    close = keys.suggestion(value, words) if isinstance(value, str) else None
    if close:
        return f'Did you mean "{close}"?'
    if isinstance(value, str) and not words and re.fullmatch(r"[-+0-9.e_]+|true|false", value):
        return f"Write {value} without quotes."
    takes_list = name not in keys.SWEEP_KEYS and "a list" in keys.described(name)
    if isinstance(value, list) and name not in keys.SWEEP_KEYS and not takes_list:
        return f"Give one value; to try several, write {name} under [sweep]."
    return f"Correct the value. {_INIT}"


def load_study(path: str | Path) -> Study:
    """Read a study file.

    Raises:
        UserError: Naming the file and the line, for anything that is not right in it.
    """
    path = Path(path)
    return parse_study(read_text(path), path)
