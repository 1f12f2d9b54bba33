"""Parse the text of a study file into a `Study`; errors name the line."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from scalestudy.config import keys
from scalestudy.config.catalog import PREFIX, TASKS, applications
from scalestudy.config.file import FEWER, MOST_POINTS, TEXTS, Study
from scalestudy.config.key_lines import KeyLines
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.config.removed import key_instead
from scalestudy.config.task_defaults import TaskDefaults, task_defaults
from scalestudy.config.toml_text import read_text, toml_table
from scalestudy.plugins.engines import (
    DEFAULT,
    engine_of_imports,
    engine_traits,
    find_engines,
    label_of,
)
from scalestudy.plugins.strategies import named, of_engine, traits
from scalestudy.util.errors import UserError

MOST_CHARACTERS = 1000
"""Largest number of characters of a title or a description."""
_INIT = "`scalestudy docs reference/study-file` lists every key with its default."
_NAME = re.compile(r"[^\W_][\w .,+=@-]{0,99}")
_BARE = re.compile(r"[-+0-9.e_]+|true|false")
"""What TOML writes without quotes: a number, or a truth value."""


def load_study(path: str | Path) -> Study:
    """Read a study file.

    Raises:
        UserError: Something in it is wrong; the error names the file and the line.
    """
    return parse_study(read_text(Path(path)), Path(path))


def parse_study(text: str, path: Path) -> Study:
    """Parse the text of a study file.

    Args:
        text: Contents of the file.
        path: Path of the file, for messages, the study's name, and the task's relative path.

    Raises:
        UserError: Something in it is wrong; the error names the file and the line.
    """
    table = toml_table(text, path.name)
    return _Parser(path, KeyLines.read(text, path.name)).study(table)


def study_of(table: dict[str, Any], path: Path) -> Study:
    """Make a study from a table, as if read from `path`, though messages name no line.

    Raises:
        UserError: Something in it is wrong.
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
        sections = {}
        for name in keys.ALL_SECTIONS:
            sections[name] = self._section(name, self._table(table, name))
        sweep = self._sweep(self._table(table, "sweep"))
        for name in sweep["other"]:
            section, key = name.split(".")
            if key in sections[section]:
                expected = f"{key} under [{section}] or under [sweep]"
                self._wrong(
                    expected,
                    "it under both",
                    f"sweep.{key}",
                    "Keep one of the two.",
                    literal=True,
                )
        defaults = task_defaults(self._task(table))
        sweep["strategy"] = self._strategies(defaults, sweep.get("strategy"))
        top: dict[str, Any] = {
            "name": self._name(table),
            "task": defaults.task,
            "quality_margin": self._margin(table),
        }
        for key in TEXTS:
            if key in table:
                top[key] = self._words(table, key)
        study = Study.model_validate({**top, "sweep": sweep, **sections})
        return study.placed(self.place)

    def _table(self, table: dict[str, Any], name: str) -> dict[str, Any]:
        section = table.get(name, {})
        if not isinstance(section, dict):
            action = f"Write [{name}] on a line of its own, its keys below."
            self._wrong(f"a section [{name}]", section, name, action)
        return section

    def _section(self, section: str, table: dict[str, Any]) -> dict[str, Any]:
        known = tuple(keys.ALL_SECTIONS[section].model_fields)
        for key in table:
            if key not in known:
                self._unknown(key, f"{section}.{key}", section, known)
        values = {}
        for key, value in table.items():
            values[key] = self._value(f"{section}.{key}", value)
        return values

    def _sweep(self, table: dict[str, Any]) -> dict[str, Any]:
        lists: dict[str, Any] = {}
        other: dict[str, list[Any]] = {}
        for written, given in _flatten(table):
            at = f"sweep.{written}"
            if written in keys.SWEEP_KEYS:
                lists[written] = self._list(at, given, at)
                continue
            name = keys.full_name(written)
            if name is None:
                known = list(keys.SWEEP_KEYS)
                for model in keys.SECTIONS.values():
                    known += model.model_fields
                self._unknown(written, at, "sweep", tuple(known))
            if name in other:
                self._wrong(
                    f"{name} once in [sweep]",
                    "it twice",
                    at,
                    "Keep one of the two.",
                    literal=True,
                )
            other[name] = self._list(name, given, at)
        return {**lists, "other": other}

    def _list(
        self,
        name: str,
        given: Any,
        at: str,
    ) -> list[Any]:
        values = [given]
        # `image_size = [64, 64]` is one value; `[[64, 64], [128, 128]]` are two.
        if isinstance(given, list) and not _is_value(name, given):
            values = given
        label = name.removeprefix("sweep.")
        if not values:
            action = "Add values, or remove the key."
            self._wrong(f"at least one value for {label}", [], at, action)
        # Before each is checked: a list may have millions.
        if len(values) > MOST_POINTS:
            received = f"{len(values)} values of {label}"
            self._wrong(
                f"at most {MOST_POINTS} points in a study",
                received,
                at,
                FEWER,
                literal=True,
            )
        valid: dict[str, Any] = {}
        for value in values:
            checked = self._value(name, value, at)
            # As text: lists cannot be compared by hash, and 1 equals True.
            text = json.dumps(checked)
            if text in valid:
                self._wrong(
                    f"each value of {label} once",
                    value,
                    at,
                    "Remove the repeated value.",
                )
            valid[text] = checked
        return list(valid.values())

    def _value(
        self,
        name: str,
        value: Any,
        at: str = "",
    ) -> Any:
        at = at or name
        label = name.removeprefix("sweep.")
        value = self._expanded(value, label, at)
        # "imagenet" and "none" are words, not files.
        is_weights_file = name == "train.weights" and value not in ("imagenet", "none")
        if name == "data.read" or is_weights_file:
            value = self._file(value)
        if name == "launch.environments" and isinstance(value, dict):
            value = {engine: self._absolute(place) for engine, place in value.items()}
        try:
            return keys.check_value(name, value)
        except keys.WrongValue as wrong:
            action = wrong.action or _repair(name, value)
            self._wrong(f"{wrong} for {label}", value, at, action)

    def _file(self, value: Any) -> Any:
        if not isinstance(value, str) or not value:
            return value
        # Paths in a study file are relative to it, wherever the command is called.
        file = self.path.absolute().parent / Path(value).expanduser()
        return str(file.resolve())

    def _absolute(self, place: Any) -> Any:
        if not isinstance(place, str) or not place:
            return place
        return os.path.abspath(self.path.absolute().parent / place)

    def _expanded(
        self,
        value: Any,
        name: str,
        at: str,
    ) -> Any:
        if isinstance(value, list):
            return [self._expanded(item, name, at) for item in value]
        if isinstance(value, dict):
            return {key: self._expanded(item, name, at) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        try:
            return keys.expand_variables(value)
        except keys.UndefinedVariable as undefined:
            expected = (
                f"the environment variable {undefined}, which {name} uses, to be set"
            )
            action = f"Run `export {undefined}=...` first, or write the value itself ($$ for a literal $)."
            self._wrong(expected, value, at, action)

    def _name(self, table: dict[str, Any]) -> str:
        written = table.get("name", self.path.stem)
        name = self._expanded(written, "name", "name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            expected = "a name that is valid as a folder (letters, digits and .,+=@-, a letter or digit first)"
            self._wrong(expected, name, "name", 'Write name = "my-study".')
        return name

    def _task(self, table: dict[str, Any]) -> str:
        if "task" not in table:
            action = 'Write task = "unet" first.'
            self._wrong(
                "a task at the top of the file",
                "none",
                "task",
                action,
                literal=True,
            )
        task = self._expanded(table["task"], "task", "task")
        models = [f"{PREFIX}{name}" for name in applications()]
        known = [*TASKS.names(), *models]
        # Without Keras here, as on a login node, none of its models is known.
        unknown_here = not models and str(task).startswith(PREFIX)
        if task in known or (isinstance(task, str) and unknown_here):
            return str(task)
        if not isinstance(task, str) or not task.endswith(".py"):
            choices = [*TASKS.names(), f"{PREFIX}MODEL"]
            names = [f'"{name}"' for name in choices]
            expected = f"{', '.join(names)} or the path of a Python file for task"
            action = _did_you_mean(task, known, "Name a task, or a file ending in .py.")
            self._wrong(expected, task, "task", action)
        file = (self.path.absolute().parent / task).resolve()
        if not file.is_file():
            action = "Correct the path. It is relative to the study file."
            self._wrong(
                "the file of the task",
                f"{file}, which does not exist",
                "task",
                action,
                literal=True,
            )
        return str(file)

    def _strategies(self, defaults: TaskDefaults, given: list[str] | None) -> list[str]:
        """The swept strategies; by default, the own way of the engine that computes the task.

        A task file that names no engine needs the one whose modules it imports.
        """
        found = find_engines(defaults.file)
        needed = defaults.engine or engine_of_imports(found, {})
        if given is None:
            if defaults.engine is None and len(found) > 1:
                self._refuse_two_engines(defaults.task, found)
            return [engine_traits(needed).default_strategy]
        # Keras models, which every engine computes.
        if defaults.engine is None and needed == DEFAULT:
            return given
        choices = ", ".join(row.name for row in of_engine(needed))
        for name in given:
            if traits(name).engine != needed:
                of = f"{label_of(needed)}, which computes the task {defaults.task}"
                action = "Take one of these, or another task."
                if defaults.engine is None:
                    action = f'Take one of these, or write engine = "{DEFAULT}" in a task file for Keras.'
                self._wrong(
                    f"strategies of {of}: {choices}",
                    name,
                    "sweep.strategy",
                    action,
                )
        return given

    def _refuse_two_engines(self, task: str, found: list[str]) -> NoReturn:
        choices = [f'engine = "{name}"' for name in found]
        labels = map(label_of, found)
        first, *_, last = found
        self._wrong(
            f"{' or '.join(choices)} in the task file, which imports modules of {' and '.join(labels)}",
            f"none in {task}",
            "task",
            f'Write engine = "{last}" in it if {label_of(last)} computes its model or its loss, else'
            f' engine = "{first}".',
            literal=True,
        )

    def _words(self, table: dict[str, Any], key: str) -> str:
        words = self._expanded(table[key], key, key)
        is_text = isinstance(words, str) and words.strip()
        if not is_text or len(words) > MOST_CHARACTERS:
            expected = f"a text of 1 to {MOST_CHARACTERS} characters for {key}"
            action = f'Write {key} = "What readers should know", or leave it out.'
            self._wrong(expected, words, key, action)
        # Lines of the file are no lines of a page: the text is one paragraph.
        return " ".join(words.split())

    def _margin(self, table: dict[str, Any]) -> QualityMargin | None:
        key = "quality_margin"
        if key not in table:
            return None
        try:
            return QualityMargin.parse(table[key])
        except ValueError as error:
            action = 'Write quality_margin = 0.01, or quality_margin = "2 %".'
            self._wrong(f"{error} for {key}", table[key], key, action)

    def _unknown(
        self,
        key: str,
        at: str,
        section: str,
        known: tuple[str, ...],
    ) -> NoReturn:
        inside = f"[{section}]" if section else "the top of the file"
        self._wrong(
            f"a known key in {inside}",
            f"`{key[: keys.LONGEST]}`",
            at,
            key_instead(key) or _meant(key, section, known),
            literal=True,
        )

    def _wrong(
        self,
        expected: str,
        received: Any,
        at: str,
        action: str,
        *,
        literal: bool = False,
    ) -> NoReturn:
        seen = received if literal else keys.shown(received)
        section, _, _ = at.rpartition(".")
        # The line of the section, where the key is one that the file lacks.
        where = self.place.at(at, section)
        raise UserError(expected, f"{seen}{where}", action)


def _flatten(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _is_value(name: str, given: Any) -> bool:
    """Whether a list is a single value of the key, such as a pair for image_size."""
    try:
        keys.check_value(name, given)
    except keys.WrongValue:
        return False
    return True


def _did_you_mean(word: Any, known: list[str], otherwise: str) -> str:
    if not isinstance(word, str):
        return otherwise
    close = keys.suggestion(word, known)
    if not close:
        return otherwise
    return f'Did you mean "{close}"?'


def _meant(key: str, section: str, known: tuple[str, ...]) -> str:
    if section and key in keys.TOP_KEYS:
        return f"`{key}` belongs at the top of the file, before the first [section]."
    keys_of: dict[str, tuple[str, ...]] = {}
    for name, model in keys.ALL_SECTIONS.items():
        keys_of[name] = tuple(model.model_fields)
    owners = keys_of | {"sweep": keys.SWEEP_KEYS}
    for owner, names in owners.items():
        if key in names and owner != section:
            return f"`{key}` belongs in [{owner}]."
    if section in ("", "launch", "sweep") and key in keys.SITE_KEYS:
        return f"`{key}` belongs in the site profile: scalestudy site init"
    if key in ("nodes", "ntasks", "ntasks_per_node"):
        return (
            "The number of nodes follows from `workers` in [sweep] and `workers_per_node` in [launch], or"
            " `tasks_per_node` in the site profile."
        )
    # The section that it was written in first: a close name there is the likelier one.
    _, _, last = key.rpartition(".")
    own_first = {section: known} | keys_of
    for name, names in own_first.items():
        close = keys.suggestion(last, names)
        if close:
            where = "" if name == section else f" in [{name}]"
            return f"Did you mean `{close}`{where}?"
    return _INIT


def _repair(name: str, value: Any) -> str:
    words = keys.choices(name)
    if isinstance(value, str):
        strategy = None
        if name == "sweep.strategy":
            strategy = named(value)
        if strategy:
            return f'Write "{strategy}", the name of {value} here.'
        # The quotes made a text of it.
        if not words and _BARE.fullmatch(value):
            return f"Write {value} without quotes."
    in_section = not name.startswith("sweep.")
    if isinstance(value, list) and in_section and not _takes_list(name):
        return f"Set one value; to try several, write {name} under [sweep]."
    return _did_you_mean(value, words, f"Correct the value. {_INIT}")


def _takes_list(name: str) -> bool:
    return "a list" in keys.describe_key(name)
