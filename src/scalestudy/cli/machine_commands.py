"""Commands for this machine and for clusters: `check` and `site`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scalestudy.cli.help import CommandGroup
from scalestudy.cli.options import AnswerOption, ForceOption, argument, option
from scalestudy.cli.printing import err, out, write_new
from scalestudy.util.errors import UserError
from scalestudy.util.targets import refuse_target

if TYPE_CHECKING:
    from rich.table import Table

    from scalestudy.features.check.check_report import Report


STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red"}


def check_command(
    what: Annotated[
        str | None,
        argument(
            "Study file, site profile (name or path), or folder of an earlier check.",
            "STUDY_OR_SITE",
            "this machine",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        option(
            "Number of processes.",
            "N",
            "the study's largest",
            name=("--workers", "-n"),
            min=1,
        ),
    ] = None,
    nodes: Annotated[
        int | None, option("Nodes of the job of --submit.", "N", min=1)
    ] = None,
    submit: Annotated[
        bool,
        option(
            "Also check the nodes, by a short job, and wait for it.",
            name="--submit",
        ),
    ] = False,
    engine: Annotated[
        str | None,
        option("Engine whose strategies to check.", default="the study's first"),
    ] = None,
    skip: Annotated[
        list[str] | None, option("Leave out a topic. Repeatable.", "TOPIC")
    ] = None,
    folder: Annotated[
        Path | None, option("Folder for the check's files.", "DIR", name="--out")
    ] = None,
    strategies: Annotated[
        bool,
        option(
            "List all strategies, and whether they can be used here.",
            name="--strategies",
        ),
    ] = False,
    form: AnswerOption = "table",
    force: ForceOption = False,
) -> None:
    """Check software, machine, network and collectives. Each line says pass, warn or fail, and what to do.

    The exit code is 0 if no line says fail, and 1 otherwise.
    """
    refuse_target(folder, force=force)
    if strategies:
        return _print_strategies(form)
    from scalestudy.features.check.check import CheckOptions, check

    # Progress goes to standard error, so that standard output holds nothing but the answer.
    console, shown = err(), ""
    options = CheckOptions(workers, nodes, submit, tuple(skip or ()), folder, engine)
    with console.status("Checking") as status:

        def on_progress(text: str) -> None:
            from rich.markup import escape

            nonlocal shown
            status.update(escape(text))
            # In a file there is no line to redraw: each text once.
            if not console.is_terminal and text != shown:
                console.print(text, markup=False)
            shown = text

        report = check(
            what,
            options,
            note=lambda text: console.print(text, markup=False),
            on_progress=on_progress,
        )
    _print_report(report, form)
    raise typer.Exit(1 if report.failed else 0)


def _print_report(report: "Report", form: Literal["table", "json"]) -> None:
    if form == "json":
        sys.stdout.write(report.model_dump_json(indent=1) + "\n")
        return

    console = out()
    console.print(_lines(report))
    console.print(report.verdict)


def _lines(report: "Report") -> "Table":
    from rich.table import Table
    from rich.text import Text

    from scalestudy.features.check.check_report import merge

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "What", "Where", "Seen, and what to do"):
        table.add_column(name, overflow="fold", no_wrap=name in ("", "What"))
    # As Text, not markup: what a check has seen may hold brackets.
    for line in merge(report.lines):
        seen = Text(line.seen)
        if line.action:
            seen.append(f"\n→ {line.action}", style=STYLES[line.status])
        table.add_row(
            Text(line.status, style=STYLES[line.status]),
            line.topic,
            Text(line.where),
            seen,
        )
    return table


def _print_strategies(form: Literal["table", "json"]) -> None:
    from scalestudy.features.check.strategy_records import strategy_records

    records = strategy_records()
    if form == "json":
        sys.stdout.write(json.dumps(records, indent=1) + "\n")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("Strategy", "Engine", "Steps", "Nodes", "Gradients by", "Here"):
        table.add_column(name, overflow="fold", no_wrap=name in ("Strategy", "Engine"))
    for row in records:
        here = Text("usable")
        if row["missing"]:
            here = Text(row["missing"], style=STYLES["warn"])
        steps = "synchronous" if row["synchronous"] else "asynchronous"
        if not row["timed"]:
            steps += ", untimed"
        nodes = "many" if row["nodes"] else "one"
        table.add_row(
            row["strategy"],
            row["engine"],
            steps,
            nodes,
            row["summed_by"] or "–",
            here,
        )
    console = out()
    console.print(table)
    # One line for all strategies that lack the same.
    missing: dict[str, list[str]] = {}
    for row in records:
        if row["missing"]:
            missing[row["action"]] = []
    for row in records:
        if row["action"] in missing:
            missing[row["action"]].append(row["strategy"])
    for action, names in missing.items():
        console.print(Text(f"→ {', '.join(names)}: {action}", style=STYLES["warn"]))


site_app = typer.Typer(
    cls=CommandGroup,
    help="Describe a cluster once, in a site profile.",
    no_args_is_help=True,
)


@site_app.callback()
def _group() -> None:
    """Describe a cluster once, in a site profile."""


@site_app.command("init")
def site_init_command(
    name: Annotated[
        str | None, argument("Name of the profile.", default="that of the cluster")
    ] = None,
    file: Annotated[
        Path | None,
        option(
            "File to write.",
            "FILE",
            "NAME.toml among your site profiles",
            name="--out",
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a commented site profile, filled in with what Slurm reports."""
    import re

    from scalestudy.launch.queue.site_init import ask_site, site_template
    from scalestudy.launch.queue.site_profile import load_site, sites_folder

    # It becomes the name of a file.
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise UserError(
            "a name of letters, digits, . - and _",
            repr(name),
            "Choose another name.",
        )
    slurm = ask_site()
    own_name = name or slurm.cluster or "my-site"
    path = file or sites_folder() / f"{own_name}.toml"
    write_new(path, site_template(slurm.values), force=force)
    # What Slurm reports may be no valid value: better told now than at the first job.
    load_site(path)
    if slurm.error is not None:
        words = f"Slurm did not answer ({slurm.error.received}): fill in the profile by hand."
        err().print(words, markup=False)
    if len(slurm.gpu_kinds) > 1:
        kinds = []
        for kind, count in slurm.gpu_kinds.items():
            kinds.append(f"{count} nodes with {kind}")
        partition = slurm.values["partition"]
        words = "Name one kind in gpu_request or constraint: times of different GPUs cannot be compared."
        err().print(
            f"The partition {partition} has {', '.join(kinds)}. {words}",
            markup=False,
        )
    # Among the site profiles, its name suffices.
    profile: Path | str = path.stem
    if file:
        profile = path
    out().print(
        f"Wrote {path}. Check its values, then: scalestudy check {profile}",
        markup=False,
    )


def docs_command(
    page: Annotated[
        str | None,
        argument(
            "Page, such as guides/imported, or the last part of its name.",
            "PAGE",
            "list them",
        ),
    ] = None,
) -> None:
    """Print a page of the manual, which is part of the installation."""
    from scalestudy.util.manual import page_text, pages

    console = out()
    if page is None:
        titles = pages()
        width = max(map(len, titles))
        for name, title in titles.items():
            console.print(f"{name:<{width}}  {title}", markup=False)
        return
    text = page_text(page)
    # As Markdown, for another program.
    if not console.is_terminal:
        print(text, end="")
        return
    from rich.markdown import Markdown

    with console.pager(styles=True):
        console.print(Markdown(text), soft_wrap=False)
