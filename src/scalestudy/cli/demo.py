"""`scalestudy demo`: the report of a published study, in seconds."""

from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.console import out, writing
from scalestudy.cli.options import ForceOption, VerboseOption
from scalestudy.config.targets import refuse_target

LEGEND = """\
n: workers, here GPUs. time, cost: of one training, the cost in GPU-hours. cost eff.: cost of the cheapest
one-worker row, divided by that of this row. S: speed-up over one worker of the same strategy. E: S/n."""
NEXT = "Next: scalestudy init && scalestudy run study.toml   # a small study on this machine, in minutes"


def demo(
    file: Annotated[Path, typer.Option("--out", help="HTML page to write.", metavar="FILE")] = Path(
        "published-unet.html"
    ),
    verbose: VerboseOption = False,
    force: ForceOption = False,
) -> None:
    """Report on a published study of a U-Net on 1 to 14 GPUs. Nothing is trained or downloaded."""
    from scalestudy.features.imported.gather import published_findings, source
    from scalestudy.report.formats import FORMATS, Medium
    from scalestudy.report.study_document import report_document
    from scalestudy.report.write_document import form_by_ending, write_document

    form = form_by_ending(None, file, ("html",), "html")
    refuse_target(file, force=force)
    findings, console = published_findings(), out()
    with writing(file):
        write_document(report_document(findings), form, file)
    medium = Medium(colour=console.is_terminal and not console.no_color, verbose=verbose, page=str(file))
    for text in (source(), "", LEGEND, ""):
        console.print(text, markup=False)
    print(FORMATS.get("table").render(findings, medium), end="")
    console.print(NEXT, markup=False)
