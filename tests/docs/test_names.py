"""Names in the documentation exist: commands, options, files, keys of study files and site profiles."""

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from paths import PROJECT, SOURCE
from scalestudy.config import keys
from scalestudy.config.keys import SECTIONS, SWEEP_KEYS, TOP_KEYS
from scalestudy.util.errors import UserError
from scalestudy.util.manual import page_text

PAGES = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    *sorted((PROJECT / "docs").rglob("*.md")),
    *sorted((PROJECT / "examples").glob("*.toml")),
    *sorted((PROJECT / "course").glob("*.md")),
    *sorted((PROJECT / "course").glob("*.toml")),
    *sorted((PROJECT / ".github").rglob("*.md")),
    *sorted((PROJECT / ".github").rglob("*.yml")),
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
                option
                for parameter in part.params
                for option in (*parameter.opts, *parameter.secondary_opts)
            }
            known[f"{name} {inner}".strip()] = {
                option for option in options if option.startswith("-")
            }
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
    rest = words[len(name.split()) :]
    for word, following in zip(rest, [*rest[1:], ""], strict=False):
        if name == "launch" and word.endswith((".py", ".ipynb")):
            return  # the rest belongs to the script
        option = word.partition("=")[0]
        if not re.fullmatch(r"-[a-z]|--[a-z][\w.-]*", option) or option in (
            "--help",
            "-h",
            "--version",
        ):
            continue
        if option not in commands()[name]:
            yield f"{line}: no option {option}"
            continue
        value = word.partition("=")[2] or following
        known = choices().get((name, option), ())
        if known and not value.isupper() and value not in known:
            yield f"{line}: {option} is one of {', '.join(known)}"


@cache
def choices() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the words that an option of a command accepts, for options that accept only some."""
    import typer

    from scalestudy.cli import app

    known = {}
    for name, command in typer.main.get_command(app).commands.items():
        for inner, part in getattr(command, "commands", {"": command}).items():
            for parameter in part.params:
                annotation = parameter.type_descriptor.annotation
                words = (
                    tuple(map(str, get_args(annotation)))
                    if get_origin(annotation) is Literal
                    else ()
                )
                known |= {
                    (f"{name} {inner}".strip(), option): words
                    for option in parameter.opts
                }
    return known


def is_key(word: str) -> bool:
    """Whether a word is a key of a section, with or without the section's name."""
    section, _, key = word.rpartition(".")
    return any(
        key in model.model_fields
        for name, model in SECTIONS.items()
        if section in ("", name)
    )


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
            (key for key in part if f"container.{key}" not in site_keys())
            if isinstance(part, dict)
            else ()
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
                    f"{name}.{key}" if key in SECTIONS[name].model_fields else None,
                    [one],
                    key,
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
    if dotted and dotted[2] not in (
        "py",
        "md",
        "csv",
        "html",
        "toml",
        "json",
        "jsonl",
        "tsv",
    ):
        known = {"sweep": SWEEP_KEYS, "data": data_attributes()}.get(dotted[1], ())
        if not is_key(f"{dotted[1]}.{dotted[2]}") and dotted[2] not in known:
            yield f"no key {span}"
    setting = re.fullmatch(r"((?:\w+\.)?[a-z]\w*) = (\S.*)", span)
    if setting and (full := full_name(setting[1])):
        yield from faults_of_setting(full, setting[2])
    path = span.partition(":")[0].rstrip("/")
    ours = (
        re.fullmatch(r"[\w./*-]+/[\w./*-]+", path) and path.partition("/")[0] in FOLDERS
    )
    if ours and not [*PROJECT.glob(path)]:
        yield f"no file {span}"
    if re.fullmatch(r"scalestudy(\.\w+)+", span) and not span.endswith(
        (".def", ".sif", ".json", ".toml")
    ):
        parts = span.split(".")[1:]
        if not (SOURCE / "scalestudy" / parts[0]).is_dir() and not _has(parts[0]):
            yield f"no module {span}"


def full_name(key: str) -> str | None:
    """Return the dotted name of a study key, unless site profiles have a key of this name."""
    return None if key in site_keys() else keys.full_name(key)


def faults_of_setting(name: str, text: str) -> Iterator[str]:
    """Yield why a key does not accept a value, or any of a list of values; "…" stands for more."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return  # words in place of a value
    if "…" not in text and [*_refused(name, [value], name)]:
        yield from _refused(name, value, name)


@cache
def data_attributes() -> frozenset[str]:
    """Return the attributes of a task file's `data` without importing a framework."""
    module = ast.parse((SOURCE / "scalestudy" / "tasks" / "task.py").read_text("utf-8"))
    (info,) = (
        node
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == "DataInfo"
    )
    return frozenset(
        node.target.id for node in info.body if isinstance(node, ast.AnnAssign)
    )


OBJECTS = {
    "workers": ("features/launch/script_workers.py",),
    "study": ("app/result.py",),
}
"""Names that pages use for objects of the Python interface, with the files of their classes."""


@cache
def attributes(name: str) -> frozenset[str]:
    """Return the public attributes of an object of the Python interface."""
    texts = [
        (SOURCE / "scalestudy" / file).read_text("utf-8") for file in OBJECTS[name]
    ]
    return frozenset(
        re.findall(r"(?:def (?=\w+\(\s*self)|self\.)([a-z]\w*)", "".join(texts))
    )


def faults_of_python(code: str) -> Iterator[str]:
    """Yield attributes of those objects that do not exist."""
    for name, attribute in re.findall(
        rf"(?<![\w./\"'])({'|'.join(OBJECTS)})\.([a-z]\w*)", code
    ):
        if attribute not in attributes(name) and attribute not in (
            "toml",
            "json",
            "py",
        ):
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
    return (
        name in groups
        or (SOURCE / "scalestudy" / f"{name}.py").is_file()
        or hasattr(scalestudy, name)
    )


def faults(text: str) -> list[str]:
    """Return all names on a page that do not exist."""
    return [
        *(fault for line in command_lines(text) for fault in faults_of_command(line)),
        *(fault for code in blocks(text, "toml") for fault in faults_of_toml(code)),
        *(fault for span in spans(text) for fault in faults_of_span(span)),
        *(
            fault
            for code in [*blocks(text, "python"), *spans(text)]
            for fault in faults_of_python(code)
        ),
    ]


FILES = (
    "json",
    "jsonl",
    "toml",
    "npy",
    "npz",
    "py",
    "md",
    "html",
    "csv",
    "keras",
    "png",
    "jpg",
    "yaml",
    "cfg",
)
"""Endings of names of files, which are not names of modules."""


@cache
def modules() -> dict[str, set[str]]:
    """Return what each module, package and class of ours holds, by the last part of its name."""
    held: dict[str, set[str]] = {}
    for file in sorted((SOURCE / "scalestudy").rglob("*.py")):
        held.setdefault(file.parent.name, set()).add(file.stem)
        held.setdefault(file.parent.parent.name, set()).add(file.parent.name)
        own = file.parent.name if file.stem == "__init__" else file.stem
        names = held.setdefault(own, set())
        body = ast.parse(file.read_text("utf-8")).body
        names |= defined(body)
        for part in body:
            if isinstance(part, ast.ClassDef):
                held.setdefault(part.name, set()).update(defined(part.body))
    held["scalestudy"] |= attributes_of_package()
    return held


def defined(body: list[ast.stmt]) -> set[str]:
    """Return the names that statements define."""
    names = set()
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def attributes_of_package() -> set[str]:
    """Return the names that users import from the package itself."""
    import scalestudy

    return {*scalestudy.__all__}


def faults_of_dotted(span: str) -> Iterator[str]:
    """Yield why a name in a docstring, such as `module.NAME`, is not that of something of ours."""
    parts = span.removesuffix("()").split(".")
    owner, name = parts[-2:]
    if (
        name in FILES
        or parts[0] in OUTSIDE
        or is_key(span)
        or name in modules().get(owner, ())
    ):
        return
    if owner in modules():
        yield f"`{span}`: {owner} holds no {name}"
    elif name in modules() or (
        name[:1].isupper() and any(name in held for held in modules().values())
    ):
        yield f"`{span}`: {name} is not in {owner}"
    elif owner not in identifiers() or name not in identifiers():
        yield f"`{span}`: no such name"


OUTSIDE = {
    "keras", "layer", "memory", "model", "multiprocessing", "nn", "os", "socket", "sys", "tf", "time",
    "torch",
}  # fmt: skip
"""Packages of others, and their objects, of which docstrings name parts."""


@cache
def identifiers() -> set[str]:
    """Return all words of the source outside of strings and comments."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            found |= {
                getattr(node, field, None) for field in ("id", "attr", "arg", "name")
            }
    return {word for word in found if isinstance(word, str)}


def remarks(file: Path) -> Iterator[str]:
    """Yield the docstrings and comments of a module."""
    text = file.read_text("utf-8")
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value.value
    yield from re.findall(r"^ *# .*|  # .*", text, re.MULTILINE)


def faults_of_remark(text: str) -> Iterator[str]:
    """Yield names of ours in a docstring or a comment that do not exist."""
    for span in SPAN.findall(text):
        if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+(\(\))?", span):
            yield from faults_of_dotted(span)
        yield from faults_of_span(span) if span.startswith("--") else ()


def test_docstrings_and_comments_name_what_is_there() -> None:
    wrong = {
        (str(file.relative_to(PROJECT)), fault)
        for file in sorted(SOURCE.rglob("*.py"))
        for remark in remarks(file)
        for fault in faults_of_remark(remark)
    }
    assert sorted(wrong) == []


@pytest.mark.parametrize(
    "name",
    [
        "measure.usage",
        "queues.LONGEST",
        "study.expand",
        "series.Series",
        "sources.changes",
        "style.config",
        "scalestudy.none",
        "Row.nothing_like_it",
    ],
)
def test_names_that_are_gone_are_seen_in_docstrings(name: str) -> None:
    assert list(faults_of_remark(f"See `{name}`."))


EXAMPLE = re.compile(
    r"`(scalestudy [^`]+ --from ([\w.]+))` prints\n\n```\n(.*?)```", re.DOTALL
)
"""A command on the table before it, and its output."""


def test_example_outputs_are_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from scalestudy.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    examples = [
        (page, text[: found.start()], found)
        for page in PAGES
        for text in [page.read_text("utf-8")]
        for found in EXAMPLE.finditer(text)
    ]
    assert examples
    for page, before, found in examples:
        (tmp_path / found[2]).write_text([*blocks(before, "")][-1] + "\n", "utf-8")
        with pytest.raises(SystemExit):
            main(shlex.split(found[1])[1:])
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        # Lines of the table's frame are not in the page.
        printed = [line for line in printed if not set(line) & {"─"}]
        shown = found[3].splitlines()
        assert shown[0] in printed, page
        first = printed.index(shown[0])
        assert printed[first : first + len(shown)] == shown, page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_page_names_what_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    language = {".toml": "toml", ".yml": ""}.get(page.suffix)
    if language is not None:
        text = f"```{language}\n{text}\n```"
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
        ("`scalestudy advise x --bill gpus`", "--bill is one of"),
        ('`optimizer = "sdg"`', "train.optimizer"),
        ("```\n  label: scalestudy check --environment\n```", "--environment"),
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


def test_texts_of_the_program_name_pages_by_the_command_that_prints_them() -> None:
    """An installed package has no docs/ folder."""
    texts = {
        (str(file.relative_to(PROJECT)), text)
        for file in sorted(SOURCE.rglob("*.py"))
        if re.search(r"\bdocs\b", file.read_text("utf-8"))
        for text in strings(file)
    }
    named = {
        (file, page)
        for file, text in texts
        for page in re.findall(r"\bscalestudy docs ([a-z][\w/-]+)", text)
    }
    assert len(named) >= 10
    assert [(file, page) for file, page in sorted(named) if not page_text(page)] == []
    assert [
        (file, text) for file, text in texts if re.search(r"\bdocs/[\w/-]+\.md", text)
    ] == []


def strings(file: Path) -> Iterator[str]:
    """Yield the texts of a module, among them the docstrings that `--help` prints."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_functions_and_files_that_the_architecture_lists_exist():
    package = SOURCE / "scalestudy"
    text = (PROJECT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    listed = re.findall(r"\| `(\w+)` \| `([\w/]+\.py)` \|", text)
    missing = []
    for name, file in listed:
        tree = ast.parse((package / file).read_text("utf-8"))
        defined = {getattr(node, "name", "") for node in ast.walk(tree)}
        if name not in defined:
            missing.append(f"{name} in {file}")
    for file in re.findall(r"`([\w/.-]+\.(?:py|toml|j2))`", text):
        places = (package, PROJECT, package / "features")
        if not any((place / file).exists() for place in places):
            known = [*package.rglob(file)]
            if "/" in file or not known:
                missing.append(file)
    assert len(listed) > 20
    assert not missing
