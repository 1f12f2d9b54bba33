"""Make the pictures of the gallery from finished studies: `python docs/gallery/make.py studies/`.

The folder holds the results of `nuclei.toml` and `flowers.toml`. Pictures of missing studies stay as they
are; the published table comes with the package and needs no run.
"""

import sys
from pathlib import Path

from scalestudy.analysis.findings import Findings, read_study
from scalestudy.features.imported.published import NAME, published_findings
from scalestudy.features.proposal.proposal_page import propose
from scalestudy.features.proposal.subject import RequestOptions
from scalestudy.report.figure import Figure, Picture
from scalestudy.report.sections import time_figure
from scalestudy.report.study_document import figures
from scalestudy.report.write_document import write_document
from scalestudy.store.study_folder import StudyFolder

HERE = Path(__file__).parent
SHOWN = {
    "nuclei": ("speedup", "phases"),
    "flowers": ("speedup", "quality", "loss-by-epoch"),
}
"""Figures of each study."""


def picture(study: str, figure: Figure) -> None:
    """Write a figure into this folder."""
    (HERE / f"{study}-{figure.name}.svg").write_text(Picture(figure).svg)


def of_study(name: str, findings: Findings) -> None:
    """Write the figures of a study."""
    for figure in figures(findings):
        if figure.name in SHOWN[name]:
            picture(name, figure)


def of_others() -> None:
    """Write the figures of the published table, as `scalestudy demo` reads it."""
    findings = published_findings()
    drawn = [
        figure for figure in figures(findings) if figure.name in ("speedup", "quality")
    ]
    for figure in [*drawn, time_figure(findings)]:
        picture(NAME, figure)


def main(studies: Path) -> None:
    """Make all pictures and the proposal page."""
    of_others()
    for name in SHOWN:
        if (studies / name).is_dir():
            of_study(name, read_study(StudyFolder.open(studies / name)))
    if (studies / "flowers").is_dir():
        page = propose(
            StudyFolder.open(studies / "flowers"), "csc", RequestOptions()
        ).document
        write_document(page, "markdown", HERE / "flowers-csc.md")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
