"""`scalestudy check`: whether a study can run here, before it waits in a queue."""

from pathlib import Path
from typing import Annotated

import typer


def check(
    what: Annotated[
        str | None,
        typer.Argument(
            help="Study file, site profile (name or path), or folder of an earlier check; with --environment "
            "an environment's folder. This machine alone when absent.",
            metavar="[STUDY_OR_SITE]",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; the study's largest number when absent.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes of the job (with --submit).")] = None,
    submit: Annotated[
        bool, typer.Option("--submit", help="Check the nodes too, by a short job on them, and wait for it.")
    ] = False,
    skip: Annotated[
        list[str] | None, typer.Option(help="Leave a topic out; can be repeated.", metavar="TOPIC")
    ] = None,
    limit: Annotated[
        float, typer.Option(min=1, help="Seconds without a sign of life after which a collective is ended.")
    ] = 60.0,
    wait: Annotated[float, typer.Option(min=1, help="Seconds to wait for the job.")] = 3600.0,
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the check's files; with --topology the file.", metavar="PATH"),
    ] = None,
    largest_batch: Annotated[
        bool,
        typer.Option(
            "--largest-batch",
            help="Search for the study's largest per-worker batch that fits here; nothing else is checked.",
        ),
    ] = False,
    topology: Annotated[
        bool,
        typer.Option("--topology", help="Show this node's GPUs or cores and what their links carry instead."),
    ] = False,
    measure: Annotated[bool, typer.Option(help="Measure bandwidth (with --topology).")] = True,
    environment: Annotated[
        bool, typer.Option("--environment", help="Show what an environment was built from instead.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Look anew and keep it (with --environment).")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="table or json; with --topology also markdown, html and latex.",
            metavar="FORMAT",
        ),
    ] = None,
) -> None:
    """Check software, machine, network and collectives; each line says pass, warn or fail, and what to do.

    Exit code 0 when no line says fail, 1 otherwise.
    """
    from scalestudy.cli.formats import check_format

    if topology:
        from scalestudy.cli.topology import print_topology

        return print_topology(measure=measure, form=form, file=folder)
    form = form or "table"
    check_format(form)
    if environment:
        from scalestudy.cli.env import print_environment

        return print_environment(None if what is None else Path(what), record=record, form=form)
    if largest_batch:
        from scalestudy.cli.largest_batch import print_largest_batch

        raise typer.Exit(0 if print_largest_batch(what or "", "json" if form == "json" else "table") else 1)
    from scalestudy.cli.check_progress import CheckProgress
    from scalestudy.cli.check_table import print_report
    from scalestudy.features.check.check import CheckOptions
    from scalestudy.features.check.check import check as conduct_check

    options = CheckOptions(workers, nodes, submit, tuple(skip or ()), limit, wait, folder)
    report = conduct_check(what, options, CheckProgress())
    print_report(report, "json" if form == "json" else "table")
    raise typer.Exit(1 if report.failed else 0)
