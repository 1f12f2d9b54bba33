"""Commands that report on runs that have ended: `report`, `compare`, `demo` and `export`."""

import shlex
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from scalestudy.cli.options import (
    RECORDED_EPOCHS,
    BetterOption,
    ColumnOption,
    EpochsOption,
    FileOption,
    ForceOption,
    FromOption,
    FromStrategyOption,
    FromWorkersOption,
    MarginOption,
    MetricOption,
    OpenOption,
    RowOption,
    SamplesOption,
    StudyArgument,
    argument,
    format_option,
    open_study,
    option,
    plan_given,
)
from scalestudy.cli.printing import open_page, out, show_document, writing
from scalestudy.util.errors import UserError
from scalestudy.util.targets import refuse_target

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
    from scalestudy.features.compare.sides import Side
    from scalestudy.store.study_folder import StudyFolder


FORMATS = ("table", "json", "markdown", "html")
LEGEND = """\
n: workers, here GPUs. time, cost: of one training, the cost in GPU-hours. cost eff.: cost of the cheapest
one-worker row, divided by that of this row. S: speed-up over one worker of the same strategy. E: S/n."""
NEXT = "Next: scalestudy init && scalestudy run study.toml   # a small study on this machine, in minutes"


def report_command(
    study: StudyArgument = None,
    form: Annotated[
        str | None,
        option(
            "Output format: table (the first rows if there are many), csv, json, html or markdown.",
            "FORMAT",
            "by the ending of --out, else table",
            name="--format",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        option(
            "File to write instead of printing; html goes to report/ of the results folder without it.",
            "FILE",
            name="--out",
        ),
    ] = None,
    verbose: Annotated[
        bool,
        option(
            "Print everything on the page, not only the decision.",
            name="--verbose",
        ),
    ] = False,
    target_quality: Annotated[
        float | None,
        option(
            "Quality for the useful speed-up, in the metric's unit.",
            "Q",
            "the best of one worker, less the margin",
        ),
    ] = None,
    source: FromOption = None,
    column: ColumnOption = None,
    row: RowOption = None,
    strategy: FromStrategyOption = None,
    workers: FromWorkersOption = None,
    metric: MetricOption = None,
    better: BetterOption = None,
    quality_margin: MarginOption = None,
    epochs: EpochsOption = None,
    samples: SamplesOption = None,
    share: Annotated[
        Path | None,
        option(
            "JSON file to write with the finished runs, without names, which others can `compare` "
            "with and `report` on. See `scalestudy docs about/share`.",
            "FILE",
        ),
    ] = None,
    browser: OpenOption = False,
    force: ForceOption = False,
) -> None:
    """Print or write the report of a study, finished or not.

    STUDY may also be a file written by --share, or a folder of several studies, which are listed with their
    questions and choices. With --from, numbers measured elsewhere are reported instead.
    """
    from scalestudy.report.formats import to_csv, to_json
    from scalestudy.report.study_document import (
        render_text,
        report_document,
        write_report,
    )
    from scalestudy.report.write_document import form_by_ending
    from scalestudy.store.study_folder import studies_in

    if share is not None:
        if source or form or file:
            raise UserError(
                "--share FILE alone",
                "--from, --format or --out with it",
                "Leave one out.",
            )
        _share(study, share, force=force)
        return
    # With --from, `_findings` refuses it, together with the files that are read.
    refuse_target(file, [study], force=force or bool(source))
    several = []
    if study is not None and not source:
        several = studies_in(study)
    if study is not None and several:
        _index(study, several, form, file, browser=browser)
        return
    form = form_by_ending(form, file, ("csv", *FORMATS), "html" if browser else "table")
    if browser and form != "html":
        raise UserError(
            "a page for --open",
            f"--format {form}",
            "Leave one of them out.",
        )
    # Click's numbers may be nan and inf.
    if target_quality is not None and not isfinite(target_quality):
        raise UserError("a finite --target-quality", f"{target_quality}", "Correct it.")
    options = (column or (), strategy, workers, metric, better, quality_margin, row)
    planned = {"epochs": epochs, "samples": samples}
    findings, opened = _findings(
        study,
        source,
        file,
        options,
        target_quality,
        planned,
        force=force,
    )
    console = out()
    if form == "html" and file is None:
        # Only a study has a folder for its page.
        if opened is None:
            received = "--from without it" if source else "a shared file without it"
            raise UserError(
                "a file for the page",
                received,
                "Name one: --out report.html",
            )
        with writing(None):
            written = write_report(opened, findings=findings)
        console.print(f"Wrote {written}", markup=False)
        if browser:
            open_page(written)
        return
    colour = file is None and console.is_terminal and not console.no_color
    page = None
    if opened and file is None:
        page = _page(opened, findings)
    # As functions, of which only the chosen form is called: for CSV and JSON no figure is drawn.
    programs = {
        "table": lambda: render_text(
            findings,
            colour=colour,
            verbose=verbose,
            page=page,
        ),
        "csv": lambda: to_csv(findings.rows),
        "json": lambda: to_json(findings),
    }
    show_document(lambda: report_document(findings), form, file, programs)
    if browser and file:
        open_page(file)


def _index(
    folder: Path,
    studies: list[Path],
    form: str | None,
    file: Path | None,
    *,
    browser: bool,
) -> None:
    from scalestudy.features.study_index import index_document, lines_of
    from scalestudy.report.write_document import FORMS, form_by_ending

    chosen = form_by_ending(form, file, FORMS, "html" if browser else "table")
    if file is None and chosen == "html":
        file = folder / "index.html"
    # Links to the studies' pages lead from where the index lies.
    beside = (file or folder / "index.html").parent
    document = index_document(folder.name, lines_of(studies, beside))
    show_document(lambda: document, chosen, file, {})
    if browser and file:
        open_page(file)


def _share(study: Path | None, file: Path, *, force: bool) -> None:
    from scalestudy.analysis.findings import read_study
    from scalestudy.features.share import share_study
    from scalestudy.launch.study_status import study_status
    from scalestudy.util.targets import write_named

    opened = open_study(study)
    refuse_target(file, [study], force=force)
    # Read once for both: runs may end between two readings.
    overview = study_status(opened)
    shared = share_study(opened, read_study(opened, overview=overview).runs, overview)
    with writing(file):
        write_named(file, shared.text())
    left_out = ""
    if shared.withheld:
        left_out = f"; left out: {', '.join(shared.withheld)}"
    out().print(f"Wrote {file}: {len(shared.runs)} runs{left_out}", markup=False)


def _page(opened: "StudyFolder", findings: "Findings") -> str:
    """Path of a study's page if it is up to date, else the command that writes it.

    The table beside it, which is written after it, shows whether it has the same findings. Times would not:
    runs end by the clocks of other hosts.
    """
    from scalestudy.report.formats import to_json

    page = opened.path / "report" / "report.html"
    table = opened.path / "report" / "table.json"
    # A table that cannot be read says as little of the page as an old one.
    with suppress(OSError, UnicodeDecodeError):
        if page.exists() and table.read_text() == to_json(findings):
            return str(page)
    folder = shlex.quote(str(opened.path))
    return f"write it with scalestudy report {folder} --format html"


def _findings(
    study: Path | None,
    source: list[str] | None,
    file: Path | None,
    options: tuple[Any, ...],
    target_quality: float | None,
    planned: dict[str, int | None],
    *,
    force: bool,
) -> "tuple[Findings, StudyFolder | None]":
    """Findings of imported numbers, read with `options`, of a shared file, or of a study, with its folder."""
    from scalestudy.analysis.findings import read_study
    from scalestudy.analysis.shared import is_shared, read_shared

    measured_here = not source and not (study is not None and is_shared(study))
    if any(planned.values()) and not measured_here:
        raise UserError(
            RECORDED_EPOCHS,
            "numbers without them",
            "Leave the option out.",
        )
    if source:
        from scalestudy.features.imported.columns import options_of
        from scalestudy.features.imported.find_files import paths_of
        from scalestudy.features.imported.gather import import_findings

        if study is not None:
            raise UserError(
                "a study or --from FILE",
                "both",
                "Compare them: scalestudy compare FILE STUDY",
            )
        refuse_target(file, list(paths_of(source)), force=force)
        return import_findings(source, options_of(*options), target_quality), None
    if study is not None and is_shared(study):
        findings, opened = read_shared(study).findings(target_quality), None
    else:
        opened = open_study(study)
        plan = plan_given(study, opened, **planned)
        findings = read_study(opened, plan=plan, target_quality=target_quality)
    # Refused rather than ignored: the user expects an effect.
    if any(options):
        raise UserError(
            "--from FILE",
            "an option that needs it",
            "Add --from, or leave out that option.",
        )
    return findings, opened


def compare_command(
    reference: Annotated[
        Path,
        argument(
            "Study file, results folder, file written by `report --share`, or table for `report --from`.",
            "REFERENCE",
        ),
    ],
    other: Annotated[Path, argument("Study to compare with it, likewise.", "STUDY")],
    form: Annotated[str | None, format_option(*FORMATS)] = None,
    file: FileOption = None,
    force: ForceOption = False,
) -> None:
    """Compare two studies: their settings, their results, and which differences are more than chance.

    The studies may differ in site, software or settings. Rows with the same strategy, workers and other swept
    values are compared.
    """
    from scalestudy.features.compare.comparison import compare as compare_sides
    from scalestudy.features.compare.comparison_page import (
        compare_document,
        compare_json,
    )
    from scalestudy.report.write_document import form_by_ending

    refuse_target(file, [reference, other], force=force)
    chosen = form_by_ending(form, file, FORMATS, "table")
    first, second = _side(reference), _side(other)
    # Studies of one file in two folders, as of two sites, have one name.
    if first.name == second.name:
        names = _distinct_names(reference, other)
        first = replace(first, name=names[0])
        second = replace(second, name=names[1])
    comparison = compare_sides(first, second)
    programs = {"json": partial(compare_json, comparison)}
    show_document(lambda: compare_document(comparison), chosen, file, programs)


def _distinct_names(first: Path, second: Path) -> tuple[str, str]:
    """The shortest ends of two paths that differ, which fit a table better than the paths."""
    one = first.resolve().parts
    other = second.resolve().parts
    # From two parts on: the last parts alone are equal.
    for parts in range(2, max(len(one), len(other)) + 1):
        names = "/".join(one[-parts:]), "/".join(other[-parts:])
        if names[0] != names[1]:
            return names
    return str(first), str(second)


def _side(path: Path) -> "Side":
    from scalestudy.analysis.findings import read_study
    from scalestudy.analysis.shared import is_shared, read_shared
    from scalestudy.config.differences import settings_of
    from scalestudy.config.task_sources import sources_of
    from scalestudy.features.compare.sides import Side

    if is_shared(path):
        shared = read_shared(path)
        return Side(path.stem, shared.findings(), shared.asked, shared.not_known)
    if path.is_file() and path.suffix != ".toml":
        from scalestudy.features.imported.gather import import_findings

        return Side(path.stem, import_findings([str(path)]))
    folder = open_study(path)
    findings = read_study(folder)
    settings = settings_of(folder.study)
    for file, digest in sources_of(folder.points()).items():
        settings[f"task: {file}"] = digest[:12]
    return Side(folder.path.resolve().name, findings, settings)


def demo_command(
    file: Annotated[Path, option("HTML page to write.", "FILE", name="--out")] = Path(
        "published-unet.html"
    ),
    force: ForceOption = False,
) -> None:
    """Report on a published study of a U-Net on 1 to 14 GPUs. Nothing is trained or downloaded."""
    from scalestudy.features.imported.published import published_findings
    from scalestudy.report.study_document import render_text, report_document
    from scalestudy.report.write_document import form_by_ending, write_document

    form = form_by_ending(None, file, ("html",), "html")
    refuse_target(file, force=force)
    findings, console = published_findings(), out()
    with writing(file):
        write_document(report_document(findings), form, file)
    colour = console.is_terminal and not console.no_color
    for text in (LEGEND, ""):
        console.print(text, markup=False)
    print(render_text(findings, colour=colour, page=str(file)), end="")
    console.print(NEXT, markup=False)


def export_command(
    study: StudyArgument = None,
    dashboard: Annotated[
        Literal["tensorboard", "mlflow"] | None,
        option("Dashboard whose library writes the runs.", name="--to"),
    ] = None,
    target: Annotated[
        str | None,
        option(
            "Folder to write, or for MLflow the address of a server.",
            "DIR",
            name="--out",
        ),
    ] = None,
) -> None:
    """Write settings and values of every finished run for TensorBoard or MLflow.

    Runs that an earlier export has written there are left alone. The libraries are optional:
    pip install 'scalestudy[tensorboard]' or 'scalestudy[mlflow]'.
    """
    from scalestudy.analysis.findings import read_study
    from scalestudy.features.export import export_runs

    if dashboard is None:
        raise UserError("--to tensorboard or --to mlflow", "neither", "Choose one.")
    if target is None:
        raise UserError("a folder for the runs", "none", "Name one: --out DIR")
    # The address of an MLflow server is no path.
    if "://" not in target:
        refuse_target(Path(target), [study])
    opened = open_study(study)
    findings = read_study(opened)
    count, command = export_runs(findings.runs, findings.name, dashboard, target)
    left = len(findings.runs) - count
    already = ""
    if left:
        already = f" ({left} were there already)"
    out().print(
        f"Wrote {count} runs to {target}{already}. Show them with: {command}",
        markup=False,
    )
