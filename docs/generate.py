"""MkDocs hooks that generate parts of the site: the reference from the code, the first page, the changelog.

A line `<!-- generated: NAME -->` in a page is replaced by that part; it is invisible in the rendered file.
"""

import html
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MARK = re.compile(r"^<!-- generated: ([a-z-]+) -->$", re.MULTILINE)
CODE = re.compile(
    r"""(?<![`\w])(?:"[^"\s`]+"|--[a-z][\w=-]*|\[(?:data|train|launch|sweep)\])(?![`\w])"""
)
"""Matches code without backticks in texts of the program: quoted words, options, sections."""
FIELD = {
    r" that is not empty": "",
    r"a whole number": "an integer",
    r" and (at most|below) \d{4,}": "",  # limits beyond practical values
    r" of at least": " from",
    r"from (\S+) and at most (\S+)": r"from \1 to \2",
    r"a list of 2 \((.*) each\)": r"a list of two, \1 each",
    r", \{.*\}| as \[.*\]": "",  # an example follows
}
"""Patterns in the words of messages, and the standard terms that replace them."""
MEANINGS = {
    "schema_version": "Version of the record's form.",
    "name": "The point, such as horovod-w2-s0.",
    "strategy": "The strategy, as swept.",
    "implementation": "The strategy that did the work: native stands for one of several.",
    "workers": "Number of workers.",
    "seed": "Seed of weights, order and dropout.",
    "swept": "Values of other swept keys, by their dotted names.",
    "per_worker_batch": "Samples of one worker in a step.",
    "global_batch": "Samples of all workers together in a step.",
    "samples_processed": "Samples really processed by all workers together.",
    "test": "Loss and metrics over the test set, if the source brings one.",
    "best_epoch": "The epoch of best_quality, counted from 1.",
    "parameters": "Number of the model's parameters.",
    "oversubscribed": "Why its times are excluded: more workers than cores or GPUs. None if they are not.",
    "phase": "What the run is doing.",
    "rank": "Rank of the process, from 0.",
    "size": "Number of processes.",
    "local_rank": "Rank among the processes of its node, from 0.",
    "host": "Host name.",
    "pid": "Process id on that host.",
    "placement_source": "What told the process its rank: the launcher's or queue's variables.",
    "threads": "Threads that compute.",
    "driver": "Version of the GPU driver. None without GPUs.",
    "kernel": "Version of the operating system's kernel.",
    "memory_bytes": "Memory of the machine.",
    "evaluation_seconds": "Time of the evaluation after the epoch.",
    "seconds_left": "Predicted time to the end of the run.",
}
"""Meanings of keys that are not documented in the code."""
COPIED = {
    "index.md": "README.md",
    "about/changelog.md": "CHANGELOG.md",
    "about/contributing.md": "CONTRIBUTING.md",
}
"""Pages that are copies of files elsewhere in the repository."""
LINKED = ("CITATION.cff", "LICENSE")
"""Files of the repository that the first page links to, copied as they are."""


def on_config(config: Any) -> None:
    """Import the code of this repository instead of an installed package."""
    sys.path.insert(0, str(ROOT / "src"))


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of `COPIED` and the files of `LINKED`."""
    from mkdocs.structure.files import File

    for page, source in COPIED.items():
        files.append(
            File.generated(
                config, page, content=linked((ROOT / source).read_text("utf-8"), page)
            )
        )
    for name in LINKED:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Insert generated parts at their marks."""
    return MARK.sub(lambda match: PARTS[match[1]](), markdown)


def command_line() -> str:
    """Every command: usage, what it does, arguments and options, examples."""
    import typer

    from scalestudy.cli import GROUPS, app

    main = typer.main.get_command(app)
    lines = []
    for title, names in GROUPS.items():
        lines += [f"## {title}", ""]
        for name in names:
            command = main.commands[name]
            if hasattr(command, "commands"):
                for inner, part in command.commands.items():
                    lines += _command(f"{name} {inner}", part)
            else:
                lines += _command(name, command)
    return "\n".join(lines)


def _command(name: str, command: Any) -> Iterator[str]:
    from scalestudy.cli.help import help_records

    context = command.make_context(f"scalestudy {name}", [], resilient_parsing=True)
    usage = " ".join(["scalestudy", name, *command.collect_usage_pieces(context)])
    paragraphs = (command.help or "").split("\n\n")
    yield from (
        f"### scalestudy {name}",
        "",
        "```text",
        usage,
        "```",
        "",
        "\n\n".join(map(prose, paragraphs)),
        "",
    )
    for heading, kind in (("Argument", "argument"), ("Option", "option")):
        records = help_records(command, context, kind)
        shown = [record for record in records if not record[0].startswith("-h,")]
        if shown:
            yield from (f"| {heading} | |", "|-|-|")
            yield from (f"| `{spec}` | {_option(text)} |" for spec, text in shown)
            yield ""
    examples = (command.epilog or "").partition("Examples:\n")[2]
    if examples:
        yield from (
            "```sh",
            *(line.removeprefix("  ") for line in examples.splitlines()),
            "```",
            "",
        )


def _option(text: str) -> str:
    """Help of an option, followed by the facts in its brackets as sentences."""
    text, _, brackets = text.partition("  [")
    facts = {
        r"required": "Required.",
        r"default: \((.*)\)": r"Default: \1.",
        r"default: (.*)": r"Default: `\1`.",
        r"above 0": r"Above 0.",
        r"at least (.*)": r"At least \1.",
        r"(.*) to (.*)": r"From \1 to \2.",
    }
    for fact in filter(None, brackets.removesuffix("]").split("; ")):
        pattern = next(pattern for pattern in facts if re.fullmatch(pattern, fact))
        text += " " + re.sub(pattern, facts[pattern], fact)
    return prose(text)


def study_file() -> str:
    """Every key of a study file, section by section."""
    from scalestudy.config.file import Study
    from scalestudy.config.keys import ALL_SECTIONS, SWEEP_KEYS
    from scalestudy.config.settings import SweptValue

    top = Study.model_json_schema()
    lines = ["## Top of the file { #top }", ""]
    for name in ("task", "name", "title", "description", "quality_margin"):
        schema = top["properties"][name]
        if name == "quality_margin":
            schema = {"wanted": 'a number, or a percentage as "2 %"', **_said(schema)}
        lines += _key("top", name, schema, required=name == "task")
    lines += [
        "## [sweep] { #sweep }",
        "",
        prose(_doc(type(Study.model_fields["sweep"].default))),
        "",
    ]
    inside = top["$defs"]["SweepSettings"]["properties"]
    for name, schema in SweptValue.model_json_schema()["properties"].items():
        if name in inside:
            wanted = "a list, each " + _wanted(schema)
            lines += _key(
                "sweep", name, {"wanted": wanted, **_said(inside[name])}, required=False
            )
    assert set(SWEEP_KEYS) == {*inside} - {"other"}
    for section, model in ALL_SECTIONS.items():
        lines += [f"## [{section}] {{ #{section} }}", "", prose(_doc(model)), ""]
        lines += _keys(section, model)
    return "\n".join(lines)


def site_profile() -> str:
    """Every key of a site profile."""
    from scalestudy.launch.queue.site_profile import Container, Site

    lines = ["## Keys { #keys }", "", *_keys("site", Site, without=("name",))]
    lines += [
        "## [container] { #container }",
        "",
        prose(_doc(Container)),
        "",
        *_keys("container", Container),
    ]
    return "\n".join(lines)


def strategies() -> str:
    """A table of the strategies for each engine."""
    from scalestudy.plugins.engines import ENGINES

    lines = []
    for name in ENGINES.built_in():
        engine = ENGINES.get(name)
        if not engine.strategies:
            continue
        lines += [f"## {engine.label} {{ #{name} }}", ""]
        lines += [
            "| Strategy | What it is | Processes | Several nodes | Gradients summed by |",
            "|-|-|-|-|-|",
        ]
        for row in engine.strategies:
            processes = (
                "–"
                if row.stands_for
                else "one"
                if row.one_process
                else "one per worker"
            )
            lines.append(
                f"| `{row.name}` | {prose(row.summary)} | {processes} | "
                f"{'yes' if row.spans_nodes else 'no'} | {prose(row.summed_by) or '–'} |"
            )
        lines += [
            "",
            "| Strategy | Steps | Timed | `compression` | `xla` |",
            "|-|-|-|-|-|",
        ]
        for row in engine.strategies:
            if row.stands_for:
                continue
            compression = ", ".join(f"`{form}`" for form in row.compressions) or "–"
            cells = [
                "together" if row.synchronous else "asynchronous",
                "yes" if row.timed else "no",
                compression,
                "yes" if row.xla else "no",
            ]
            lines.append(f"| `{row.name}` | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def records() -> str:
    """The keys of the records of a run, file by file."""
    from scalestudy.store import records
    from scalestudy.store.model_record import BestRecord, ModelRecord

    files = {
        "result.json": records.Result,
        "epochs.jsonl": records.EpochRecord,
        "progress.json": records.Progress,
        "ranks/N.json": records.RankRecord,
        "signs/N.json": records.Sign,
        "signs/hang.json": records.Hang,
        "failure.json": records.Failure,
        "causes/N.json": records.Cause,
        "job.json": records.JobRecord,
        "model.json": ModelRecord,
        "best.json": BestRecord,
        "gpus of result.json": records.GpuUse,
        "processes of result.json": records.ProcessUse,
        "nodes of result.json": records.NodeUse,
    }
    lines = []
    for name, model in files.items():
        file, _, record = name.partition(" of ")
        title = f"`{file}` of `{record}`" if record else f"`{file}`"
        lines += [
            f"### {title} {{ #{re.sub('[^a-z]+', '-', name.lower())} }}",
            "",
            "| Key | Meaning |",
            "|-|-|",
        ]
        for key in model.model_fields:
            meaning = (
                _described(model, key)
                or MEANINGS.get(key)
                or f"{key.replace('_', ' ').capitalize()}."
            )
            meaning = re.sub(r"\bNone\b", "`null`", meaning)  # as JSON has it
            lines.append(f"| `{key}` | {prose(meaning)} |")
        lines.append("")
    return "\n".join(lines)


def _described(model: Any, key: str) -> str | None:
    """Description of a key, from the first class of the inheritance chain that has one."""
    fields = (getattr(parent, "model_fields", {}).get(key) for parent in model.__mro__)
    return next(
        (field.description for field in fields if field and field.description), None
    )


def costs() -> str:
    """Cost columns of a row, from the docstring of `Costs`."""
    from scalestudy.analysis.costs import Costs

    attributes = re.findall(
        r"^ {8}(\w+): (.*(?:\n {12}.*)*)", Costs.__doc__ or "", re.MULTILINE
    )
    rows = (f"| `{name}` | {prose(meaning)} |" for name, meaning in attributes)
    return "\n".join(["| Column | Meaning |", "|-|-|", *rows])


def parameters() -> str:
    """Parameters of losses and metrics that have any."""
    from scalestudy.config.objectives import LOSSES, METRICS

    lines = ["| Loss or metric | Parameters, with their defaults |", "|-|-|"]
    for name, known in (*LOSSES.items(), *METRICS.items()):
        given = ", ".join(
            f"`{key}={_figure(allowed.default)}` ({_limits(allowed)})"
            for key, allowed in known.items()
        )
        lines += [f"| `{name}` | {given} |"] if given else []
    return "\n".join(lines)


def _limits(allowed: Any) -> str:
    return str(allowed).replace("1e+06", "1,000,000")


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _keys(section: str, model: Any, without: tuple[str, ...] = ()) -> Iterator[str]:
    schema = model.model_json_schema()
    for name, part in schema["properties"].items():
        if name not in without:
            yield from _key(
                section, name, part, required=name in schema.get("required", ())
            )


def _key(section: str, name: str, schema: Any, *, required: bool) -> Iterator[str]:
    from scalestudy.config.toml_text import toml_line

    default, examples = schema.get("default"), schema.get("examples")
    facts = [_wanted(schema)]
    if required:
        facts.append("**required**")
    elif default not in (None, [], {}, ""):
        facts.append(f"default `{toml_line(name, default)}`")
    if default in (None, [], {}, "") and examples:
        facts.append(f"for example `{toml_line(name, examples[0])}`")
    yield from (f"### `{name}` {{ #{section}.{name} }}", "")
    takes = prose(facts[0][0].upper() + facts[0][1:])
    yield from (
        " · ".join([takes, *facts[1:]]),
        "{ .takes }",
        "",
        prose(schema.get("description")),
        "",
    )


def _said(schema: Any) -> dict[str, Any]:
    """Description, default and examples of a schema."""
    return {
        key: schema[key]
        for key in ("description", "default", "examples")
        if key in schema
    }


def _wanted(schema: Any) -> str:
    """The type of a key in words."""
    text = _in_words(schema)
    for pattern, word in FIELD.items():
        text = re.sub(pattern, word, text)
    return text


def _in_words(schema: Any) -> str:
    from scalestudy.config.keys import wanted

    if "wanted" in schema:
        return str(schema["wanted"])
    parts = [
        part for part in schema.get("anyOf", [schema]) if part.get("type") != "null"
    ]
    if len(parts) == 1:
        (part,) = parts
        if "wanted" in part:
            return str(part["wanted"])
        if part.get("type") == "array" and "prefixItems" not in part:
            return (
                "a list of tables" if "$ref" in part["items"] else "a list of strings"
            )
        if "$ref" in part:
            return "a path, or a table"
        if part.get("type") == "object":
            return "a table of strings"
    return wanted(schema)


def _doc(model: Any) -> str:
    return " ".join((model.__doc__ or "").split())


def removed_names() -> str:
    """Tables of what existed once and what to do instead, by where it was written."""
    from scalestudy.config.removed import removed

    titles = {
        "study": "Keys of study files",
        "site": "Keys of site profiles",
        "options": "Options",
        "commands": "Commands",
    }
    lines = []
    for kind, names in removed().items():
        lines += [f"## {titles[kind]}", "", "| Removed | Instead |", "|-|-|"]
        lines += [f"| `{name}` | {prose(action)} |" for name, action in names.items()]
        lines.append("")
    return "\n".join(lines)


def prose(text: str | None) -> str:
    """Convert a text of the code to one line of Markdown; backticks and matches of `CODE` become code."""
    line = " ".join((text or "").replace("\b", "").split())
    parts = re.split(r"(`[^`]*`)", CODE.sub(r"`\g<0>`", line))
    return "".join(
        _code(part) if part.startswith("`") else _plain(part) for part in parts
    )


def _plain(text: str) -> str:
    return re.sub(r"([\\*_{}\[\]|])", r"\\\1", html.escape(text, quote=False))


def _code(span: str) -> str:
    """Return a code span, or a link for the command that prints a page of the manual."""
    page = re.fullmatch(r"`scalestudy docs ([\w-]+/[\w-]+)`", span)
    if page is None:
        return span
    return f"[{page[1].rpartition('/')[2].replace('-', ' ')}](../{page[1]}.md)"


def linked(text: str, page: str) -> str:
    """Convert a file of the repository to a page: links and paths of pages in backticks lead to the pages."""
    up = "../" * page.count("/")
    text = re.sub(r"\]\(docs/", f"]({up}", text)
    for copy, source in COPIED.items():
        text = text.replace(f"]({source})", f"]({up}{copy})")
    known = lambda name: (ROOT / "docs" / name).is_file()  # noqa: E731
    return re.sub(
        r"`docs/([\w/-]+\.md)`",
        lambda match: f"[{match[1]}]({up}{match[1]})" if known(match[1]) else match[0],
        text,
    )


PARTS: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "study-file": study_file,
    "site-profile": site_profile,
    "strategies": strategies,
    "records": records,
    "costs": costs,
    "parameters": parameters,
    "removed": removed_names,
}
