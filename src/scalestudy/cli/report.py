"""`scalestudy report`: the report of a study."""

import shlex
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scalestudy.cli.options import StudyArgument, VerboseOption, open_study

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
    from scalestudy.study.store import StudyFolder


def report(
    study: StudyArgument = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Output format: table (the first rows if there are many), csv, json, html, markdown, latex,"
            " parquet, parquet-runs (one row per run), or one of another package.",
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
            help="Numbers measured elsewhere: a CSV, JSON or Parquet table, a log, a folder, or a quoted"
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
        str | None, typer.Option(help="With --from: column or tag of the quality.", metavar="NAME")
    ] = None,
    better: Annotated[
        str | None, typer.Option(help="With --from: direction of better quality.", metavar="higher|lower")
    ] = None,
    share: Annotated[
        Path | None,
        typer.Option(
            help="JSON file to write with the finished runs, without names, which others can `compare` with"
            " and `report` on. See docs/about/share.md.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Print or write the report of a study, finished or not.

    STUDY may also be a file written by --share. With --from, numbers measured elsewhere are reported; with
    both, they are shown side by side.
    """
    from scalestudy.analysis.shared import is_shared, read_shared
    from scalestudy.cli.console import out, writing
    from scalestudy.report.formats import FORMATS, Medium
    from scalestudy.report.study_document import report_document
    from scalestudy.report.write import PAGE, write_report
    from scalestudy.report.write_document import FORMS, form_by_ending, write_document
    from scalestudy.study.targets import refuse_target
    from scalestudy.util.errors import UserError
    from scalestudy.util.files import write_atomically

    if share is not None:
        if source or form or file:
            raise UserError("--share FILE alone", "--from, --format or --out with it", "Leave one out.")
        _share(study, share)
        return
    refuse_target(file, [study])
    form = form_by_ending(form, file, FORMATS.names(), "table")
    made = FORMATS.get(form)
    console = out()
    shared = study if study is not None and is_shared(study) else None
    opened = open_study(study) if shared is None and (study is not None or not source) else None
    if target_quality is not None and not isfinite(target_quality):
        raise UserError("a finite --target-quality", f"{target_quality}", "Correct it.")
    imported = (column or (), strategy, workers, metric, better)
    if shared is not None:
        if source or any(imported):
            raise UserError(
                "a shared file alone", "--from with it", "Compare them instead: scalestudy compare"
            )
        findings = read_shared(shared).findings(target_quality)
    else:
        findings = _findings(opened, source, file, imported, target_quality)
    with writing(file):
        if file is not None and form in FORMS:
            write_document(report_document(findings), form, file)
            console.print(f"Wrote {file}", markup=False)
        elif file is not None:
            write_atomically(file, made.render(findings, Medium(verbose=verbose)))
            console.print(f"Wrote {file}", markup=False)
        elif form == PAGE and opened is not None and not source:
            console.print(f"Wrote {write_report(opened, findings=findings).page}", markup=False)
        elif form == PAGE:
            received = "--from without it" if source else "a shared file without it"
            raise UserError("a file for the page", received, "Name one: --out report.html")
        else:
            page = _page(opened, findings) if opened and not source else None
            medium = Medium(colour=console.is_terminal, verbose=verbose, page=page)
            content = made.render(findings, medium)
            if isinstance(content, bytes):
                raise UserError(
                    "a file to write to", f"--format {form}, which is binary", "Name one with --out."
                )
            print(content, end="")


def _share(study: Path | None, file: Path) -> None:
    from scalestudy.analysis.read import read_study
    from scalestudy.cli.console import out, writing
    from scalestudy.features.share.strip import shared_study
    from scalestudy.launch.status import study_status
    from scalestudy.study.targets import refuse_target
    from scalestudy.util.files import write_atomically

    opened = open_study(study)
    refuse_target(file, [study])
    overview = study_status(opened)
    shared = shared_study(opened, read_study(opened, overview=overview).runs, overview)
    with writing(file):
        write_atomically(file, shared.text())
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
    opened: "StudyFolder | None", source: list[str] | None, file: Path | None, imported: tuple[Any, ...],
    target_quality: float | None,
) -> "Findings":  # fmt: skip
    """Findings of a study, of imported numbers, or of both; `imported` holds the options for the latter."""
    from scalestudy.analysis.read import read_study
    from scalestudy.util.errors import UserError

    if source:
        from scalestudy.features.imported.columns import options_of
        from scalestudy.features.imported.gather import import_findings, paths_of
        from scalestudy.study.targets import refuse_target

        refuse_target(file, paths_of(source))
        return import_findings(source, options_of(*imported), opened, target_quality)
    assert opened is not None
    if any(imported):
        raise UserError("--from FILE", "an option that needs it", "Add --from, or leave out that option.")
    return read_study(opened, target_quality=target_quality)
