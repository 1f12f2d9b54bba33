"""`scalestudy report`: the report of a study."""

import shlex
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scalestudy.cli.console import out, writing
from scalestudy.cli.options import ForceOption, StudyArgument, VerboseOption, open_study
from scalestudy.config.targets import refuse_target
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
    from scalestudy.store.study_folder import StudyFolder


def report(
    study: StudyArgument = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Output format: table (the first rows if there are many), csv, json, html, markdown,"
            " or one of another package.",
            metavar="FORMAT",
            show_default="by the ending of --out, else table",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File to write instead of printing; html goes to report/ of the results folder without it.",
            metavar="FILE",
        ),
    ] = None,
    verbose: VerboseOption = False,
    target_quality: Annotated[
        float | None,
        typer.Option(
            help="Quality to which time and cost are reported, in the metric's unit.",
            metavar="Q",
            show_default="the best of one worker, less the margin",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            help="Numbers measured elsewhere: a CSV or JSON table, a log, a folder, or a quoted"
            " pattern. Repeatable. See docs/guides/imported.md.",
            metavar="FILE",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="With --from: column for a role, such as workers=NGPUS. Repeatable.",
            metavar="ROLE=NAME",
        ),
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="With --from: strategy of runs without one.", metavar="NAME")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="With --from: workers of runs without a number.", metavar="N"),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="With --from: column of the quality.", metavar="NAME")
    ] = None,
    better: Annotated[
        str | None, typer.Option(help="With --from: direction of better quality.", metavar="higher|lower")
    ] = None,
    quality_margin: Annotated[
        str | None,
        typer.Option(
            help="With --from: accepted loss of quality, in the metric's unit or as a percentage.",
            metavar="M",
            show_default="a rule for the metric",
        ),
    ] = None,
    share: Annotated[
        Path | None,
        typer.Option(
            help="JSON file to write with the finished runs, without names, which others can `compare` with"
            " and `report` on. See docs/about/share.md.",
            metavar="FILE",
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Print or write the report of a study, finished or not.

    STUDY may also be a file written by --share. With --from, numbers measured elsewhere are reported instead.
    """
    from scalestudy.report.formats import FORMATS, Medium
    from scalestudy.report.study_document import PAGE, report_document, write_report
    from scalestudy.report.write_document import FORMS, form_by_ending, write_document
    from scalestudy.util.files import write_named

    if share is not None:
        if source or form or file:
            raise UserError("--share FILE alone", "--from, --format or --out with it", "Leave one out.")
        _share(study, share, force=force)
        return
    refuse_target(file, [study], force=force or bool(source))  # see _findings
    form = form_by_ending(form, file, FORMATS.names(), "table")
    made = FORMATS.get(form)
    console = out()
    if target_quality is not None and not isfinite(target_quality):
        raise UserError("a finite --target-quality", f"{target_quality}", "Correct it.")
    options = (column or (), strategy, workers, metric, better, quality_margin)
    findings, opened = _findings(study, source, file, options, target_quality, force=force)
    with writing(file):
        if file is not None and form in FORMS:
            write_document(report_document(findings), form, file)
            console.print(f"Wrote {file}", markup=False)
        elif file is not None:
            write_named(file, made.render(findings, Medium(verbose=verbose)))
            console.print(f"Wrote {file}", markup=False)
        elif form == PAGE and opened is not None:
            console.print(f"Wrote {write_report(opened, findings=findings).page}", markup=False)
        elif form == PAGE:
            received = "--from without it" if source else "a shared file without it"
            raise UserError("a file for the page", received, "Name one: --out report.html")
        else:
            page = _page(opened, findings) if opened else None
            medium = Medium(colour=console.is_terminal and not console.no_color, verbose=verbose, page=page)
            print(made.render(findings, medium), end="")


def _share(study: Path | None, file: Path, *, force: bool) -> None:
    from scalestudy.analysis.read import read_study
    from scalestudy.features.share import shared_study
    from scalestudy.launch.status import study_status
    from scalestudy.util.files import write_named

    opened = open_study(study)
    refuse_target(file, [study], force=force)
    overview = study_status(opened)
    shared = shared_study(opened, read_study(opened, overview=overview).runs, overview)
    with writing(file):
        write_named(file, shared.text())
    left_out = f"; left out: {', '.join(shared.withheld)}" if shared.withheld else ""
    out().print(f"Wrote {file}: {len(shared.runs)} runs{left_out}", markup=False)


def _page(opened: "StudyFolder", findings: "Findings") -> str:
    """Path of a study's page if it is up to date, else the command that writes it."""
    page = opened.path / "report" / "report.html"
    latest = max((run.result.finished for run in findings.runs), default="")
    if page.exists():
        written = datetime.fromtimestamp(page.stat().st_mtime, UTC)
        if written.isoformat(timespec="seconds") >= latest.replace("Z", "+00:00"):
            return str(page)
    return f"write it with scalestudy report {shlex.quote(str(opened.path))} --format html"


def _findings(
    study: Path | None,
    source: list[str] | None,
    file: Path | None,
    options: tuple[Any, ...],
    target_quality: float | None,
    *,
    force: bool,
) -> "tuple[Findings, StudyFolder | None]":
    """Findings of imported numbers, read with `options`, of a shared file, or of a study, with its folder."""
    from scalestudy.analysis.read import read_study
    from scalestudy.analysis.shared import is_shared, read_shared

    if source:
        from scalestudy.features.imported.columns import options_of
        from scalestudy.features.imported.gather import import_findings, paths_of

        if study is not None:
            raise UserError("a study or --from FILE", "both", "Compare them: scalestudy compare FILE STUDY")
        refuse_target(file, paths_of(source), force=force)
        return import_findings(source, options_of(*options), target_quality), None
    if study is not None and is_shared(study):
        findings, opened = read_shared(study).findings(target_quality), None
    else:
        opened = open_study(study)
        findings = read_study(opened, target_quality=target_quality)
    if any(options):
        raise UserError("--from FILE", "an option that needs it", "Add --from, or leave out that option.")
    return findings, opened
