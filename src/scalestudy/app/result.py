"""A study as a notebook has it: tables as data frames, figures as objects, failures, advice."""

from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.launch.base import Overview, PointStatus
from scalestudy.study.store import StudyFolder

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from scalestudy.analysis.advice import Advice
    from scalestudy.analysis.findings import Findings
    from scalestudy.report.figure import Figure
    from scalestudy.report.write import ReportPaths


@dataclass(frozen=True)
class StudyFigure:
    """A figure of the report, which notebooks show."""

    figure: "Figure"

    @property
    def spec(self) -> dict[str, Any]:
        """Its Vega-Lite specification, in the report's colours."""
        from scalestudy.report.style import config

        return self.figure.spec | {"config": config()}

    @property
    def chart(self) -> "alt.TopLevelMixin":
        """The same as an Altair chart in Altair's own colours, to change or to save."""
        import altair as alt

        chart: alt.TopLevelMixin = alt.Chart.from_dict(self.figure.spec)
        return chart

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What a notebook asks for: interactive where it can draw Vega-Lite, a picture elsewhere."""
        import altair as alt

        from scalestudy.report.images import draw

        major = alt.SCHEMA_VERSION.lstrip("v").split(".")[0]
        return {
            f"application/vnd.vegalite.v{major}+json": self.spec,
            "image/png": b64encode(draw(self.figure).png).decode(),
            "text/plain": f"{self.figure.title}: {self.figure.caption}",
        }


class StudyResult:
    """A study's results, as its folder held them when it was opened, and its points as they stood."""

    def __init__(self, store: StudyFolder, overview: Overview) -> None:
        self.store = store
        self.overview = overview

    def __repr__(self) -> str:
        done = sum(status.state == "done" for status in self.overview.points)
        return f"<study {self.store.name}: {done} of {len(self.overview.points)} points done, {self.folder}>"

    @property
    def folder(self) -> Path:
        """The results folder."""
        return self.store.path

    @cached_property
    def findings(self) -> "Findings":
        """All that a report says, computed once."""
        from scalestudy.analysis.read import read_study

        return read_study(self.store, overview=self.overview)

    @cached_property
    def table(self) -> "pl.DataFrame":
        """A row for each point without its seed, under the column names of the CSV report."""
        from scalestudy.analysis.table import as_frame

        return as_frame(self.findings.rows)

    @cached_property
    def runs(self) -> "pl.DataFrame":
        """A row for each finished run: what was asked for, and what was measured."""
        from scalestudy.analysis.table import runs_table

        return runs_table(self.findings.runs)

    @cached_property
    def figures(self) -> dict[str, StudyFigure]:
        """The figures that the finished runs can fill, by name: "speedup", "efficiency", …."""
        from scalestudy.report.figures import figures

        return {figure.name: StudyFigure(figure) for figure in figures(self.findings)}

    @property
    def advice(self) -> "Advice":
        """What to run with, and why."""
        return self.findings.advice

    @property
    def failures(self) -> list[PointStatus]:
        """Points that failed, or whose records cannot be gone by, each with its reason and its run."""
        return [*self.overview.failed, *self.overview.damaged]

    def report(self) -> Path:
        """Write the report into the folder, and give its page."""
        return self.write().page

    def write(self) -> "ReportPaths":
        """Write the report into the folder, and give its files; raises OSError."""
        from scalestudy.report.write import write_report

        return write_report(self.store, findings=self.findings)
