"""Names in the documentation exist: commands, options, files, keys of study files and site profiles."""

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paths import PROJECT, SOURCE
from scalestudy.config import keys
from scalestudy.config.keys import SECTIONS, SWEEP_KEYS, TOP_KEYS
from scalestudy.util.errors import UserError

PAGES = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    *sorted((PROJECT / "docs").rglob("*.md")),
    *sorted((PROJECT / "examples").glob("*.toml")),
    *sorted((PROJECT / "course").glob("*.md")),
    *sorted((PROJECT / "course").glob("*.toml")),
]
FENCE = re.compile(r"^( *)```([\w.]*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FOLDERS = (
    "docs",
    "examples",
    "tests",
    "benchmarks",
    "environments",
    "notebooks",
    "requirements",
    "src",
    "course",
)
OTHERS = {
    "--gres",
    "--gpus",
    "--gpus-per-node",
    "--gpus-per-task",
    "--cpu-bind",
    "--gpu-bind",
    "--exclusive",
    "--export",
    "--test-only",
    "--nv",
    "--mpi",
    "--time",
    "--requeue",
    "--nodelist",
    "--hint",
    "--user",
    "--no-deps",
    "--help",
    "--array",
    "--ntasks",
    "--hostfile",
    "--cpus-per-task",
    "--upgrade-package",
    "--lr",
    "--rate",
    "--torch-backend",
}
"""Options of other programs that stand alone in code spans."""


def blocks(text: str, *languages: str) -> Iterator[str]:
    """Yield fenced code in these languages ("" for none), without the fence's indentation."""
    for indent, language, code in FENCE.findall(text):
        if language in languages:
            yield "\n".join(line.removeprefix(indent) for line in code.splitlines())


def spans(text: str) -> list[str]:
    """Return the code spans within sentences."""
    return SPAN.findall(FENCE.sub("", text))


@cache
def commands() -> dict[str, set[str]]:
    """Return options by command: "run", "model predict"."""
    import typer

    from scalestudy.cli import app

    known = {}
    for name, command in typer.main.get_command(app).commands.items():
        for inner, part in getattr(command, "commands", {"": command}).items():
            options = {
                option for parameter in part.params for option in (*parameter.opts, *parameter.secondary_opts)
            }
            known[f"{name} {inner}".strip()] = {option for option in options if option.startswith("-")}
    return known


def command_lines(text: str) -> Iterator[str]:
    """Yield each `scalestudy …` command of a page, without its comment."""
    for code in [*blocks(text, "", "sh", "bash", "console", "shell"), *spans(text)]:
        for line in code.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\||;", re.sub(r"\s#.*", "", line)):
                found = re.search(r"(?:^|[ /])(scalestudy [a-z].*)", part)
                if found:
                    yield found[1]


def faults_of_command(line: str) -> Iterator[str]:
    """Yield commands and options of a line that do not exist."""
    try:
        words = shlex.split(line)[1:]
    except ValueError:
        words = line.split()[1:]
    groups = {name.split()[0] for name in commands() if " " in name}
    name = " ".join(words[:2]) if words[0] in groups else words[0]
    if name in groups:
        return
    if name not in commands():
        yield f"{line}: no command {name}"
        return
    for word in words[len(name.split()) :]:
        if name == "launch" and word.endswith((".py", ".ipynb")):
            return  # the rest belongs to the script
        option = word.partition("=")[0]
        if not re.fullmatch(r"-[a-z]|--[a-z][\w.-]*", option) or option in ("--help", "-h", "--version"):
            continue
        if option not in commands()[name]:
            yield f"{line}: no option {option}"


def is_key(word: str) -> bool:
    """Whether a word is a key of a section, with or without the section's name."""
    section, _, key = word.rpartition(".")
    return any(key in model.model_fields for name, model in SECTIONS.items() if section in ("", name))


@cache
def site_keys() -> set[str]:
    """Return the keys of a site profile; keys of its tables follow the table's name."""
    from scalestudy.launch.queue.site_profile import Container, Site

    return {*Site.model_fields} | {f"container.{key}" for key in Container.model_fields}


def faults_of_toml(code: str) -> Iterator[str]:
    """Yield unknown keys and invalid values of a study file or a site profile."""
    try:
        table = tomllib.loads(code)
    except tomllib.TOMLDecodeError as error:
        yield f"{error}: {code}"
        return
    if {"project", "build-system", "tool"} & set(table):
        return
    if set(table) <= site_keys() and not set(table) <= set(TOP_KEYS):
        part = table.get("container", {})
        wrong = (
            (key for key in part if f"container.{key}" not in site_keys()) if isinstance(part, dict) else ()
        )
        yield from (f"no key {key} in [container]" for key in sorted(wrong))
        return
    for name, value in table.items():
        if name not in TOP_KEYS:
            yield f"no key {name} in {code}"
        elif name == "sweep":
            for key, values in value.items():
                dotted = f"sweep.{key}" if key in SWEEP_KEYS else keys.full_name(key)
                yield from _refused(dotted, values, key)
        elif name in SECTIONS:
            for key, one in value.items():
                yield from _refused(
                    f"{name}.{key}" if key in SECTIONS[name].model_fields else None, [one], key
                )


def _refused(dotted: str | None, values: Any, key: str) -> Iterator[str]:
    if dotted is None:
        yield f"no key {key}"
        return
    for value in values if isinstance(values, list) else [values]:
        try:
            keys.check_value(dotted, value)
        except (ValueError, UserError) as error:
            yield f"{dotted} = {value!r}: {error}"


def faults_of_span(span: str) -> Iterator[str]:
    """Yield options, keys and files in a code span that do not exist."""
    option = re.fullmatch(r"(--[a-z][a-z-]+)(?:[ =].*)?", span)
    known_options = OTHERS.union(*commands().values())
    if option and option[1] not in known_options:
        yield f"no option {span}"
    dotted = re.fullmatch(r"(data|train|launch|sweep)\.([a-z_]+)(?: = .*)?", span)
    if dotted and dotted[2] not in ("py", "md", "csv", "html", "toml", "json", "jsonl", "tsv"):
        known = {"sweep": SWEEP_KEYS, "data": data_attributes()}.get(dotted[1], ())
        if not is_key(f"{dotted[1]}.{dotted[2]}") and dotted[2] not in known:
            yield f"no key {span}"
    path = span.partition(":")[0].rstrip("/")
    ours = re.fullmatch(r"[\w./*-]+/[\w./*-]+", path) and path.partition("/")[0] in FOLDERS
    if ours and not [*PROJECT.glob(path)]:
        yield f"no file {span}"
    if re.fullmatch(r"scalestudy(\.\w+)+", span) and not span.endswith((".def", ".sif", ".json", ".toml")):
        parts = span.split(".")[1:]
        if not (SOURCE / "scalestudy" / parts[0]).is_dir() and not _has(parts[0]):
            yield f"no module {span}"


@cache
def data_attributes() -> frozenset[str]:
    """Return the attributes of a task file's `data` without importing a framework."""
    module = ast.parse((SOURCE / "scalestudy" / "tasks" / "task.py").read_text("utf-8"))
    (info,) = (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "DataInfo")
    return frozenset(node.target.id for node in info.body if isinstance(node, ast.AnnAssign))


OBJECTS = {
    "workers": ("features/scripts/script_workers.py",),
    "study": ("app/result.py",),
}
"""Names that pages use for objects of the Python interface, with the files of their classes."""


@cache
def attributes(name: str) -> frozenset[str]:
    """Return the public attributes of an object of the Python interface."""
    texts = [(SOURCE / "scalestudy" / file).read_text("utf-8") for file in OBJECTS[name]]
    return frozenset(re.findall(r"(?:def (?=\w+\(\s*self)|self\.)([a-z]\w*)", "".join(texts)))


def faults_of_python(code: str) -> Iterator[str]:
    """Yield attributes of those objects that do not exist."""
    for name, attribute in re.findall(rf"(?<![\w./\"'])({'|'.join(OBJECTS)})\.([a-z]\w*)", code):
        if attribute not in attributes(name) and attribute not in ("toml", "json", "py"):
            yield f"no attribute {name}.{attribute}"


def _has(name: str) -> bool:
    import scalestudy

    groups = (
        "tasks",
        "sources",
        "strategies",
        "launchers",
        "engines",
        "formats",
        "layouts",
        "metrics",
        "placements",
    )  # groups of entry points
    return name in groups or (SOURCE / "scalestudy" / f"{name}.py").is_file() or hasattr(scalestudy, name)


def faults(text: str) -> list[str]:
    """Return all names on a page that do not exist."""
    return [
        *(fault for line in command_lines(text) for fault in faults_of_command(line)),
        *(fault for code in blocks(text, "toml") for fault in faults_of_toml(code)),
        *(fault for span in spans(text) for fault in faults_of_span(span)),
        *(fault for code in [*blocks(text, "python"), *spans(text)] for fault in faults_of_python(code)),
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_page_names_what_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    if page.suffix == ".toml":
        text = f"```toml\n{text}\n```"
    assert faults(text) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("```\nscalestudy run study.toml --dry-runn   # what\n```", "--dry-runn"),
        ("`scalestudy estimate studies/study`", "no command estimate"),
        ("`scalestudy model predict STUDY images/ --ouput x`", "--ouput"),
        ("```toml\n[train]\nepoch = 3\n```", "no key epoch"),
        ("```toml\n[train]\nepochs = 0\n```", "train.epochs = 0"),
        ("```toml\n[sweep]\nworkers = [1, 0]\n```", "sweep.workers = 0"),
        ("```toml\npartition = 'gpu'\nqoss = 'x'\n```", "no key partition"),
        ("```toml\n[container]\nimages = 'x'\n```", "no key images in [container]"),
        ("`--dry-runn`", "--dry-runn"),
        ("`train.epoch`", "no key train.epoch"),
        ("`docs/none.md`", "no file docs/none.md"),
        ("`scalestudy.none`", "no module scalestudy.none"),
        ("```python\nworkers.rang\n```", "no attribute workers.rang"),
        ("`study.tables`", "no attribute study.tables"),
    ],
)
def test_what_is_not_there_is_seen(text: str, wrong: str) -> None:
    assert any(wrong in fault for fault in faults(text))


def test_options_of_a_script_are_its_own() -> None:
    assert faults("`scalestudy launch -n 2 train.py --width 3`") == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_pages_outside_the_site_hold(name: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", (PROJECT / name).read_text("utf-8"))
    ours = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in ours if not (PROJECT / link).exists()] == []


def test_texts_of_the_program_name_pages_that_exist() -> None:
    named = {
        (str(file.relative_to(PROJECT)), page)
        for file in SOURCE.rglob("*")
        if file.suffix in (".py", ".toml", ".j2")
        for page in re.findall(r"\bdocs/[\w/-]+\.md", file.read_text("utf-8"))
    }
    assert named
    assert [(file, page) for file, page in sorted(named) if not (PROJECT / page).is_file()] == []
