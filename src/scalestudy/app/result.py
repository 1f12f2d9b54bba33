"""Results of a study for notebooks: tables as data frames, figures as objects, failures, advice."""

from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.launch.launcher import Overview, PointStatus
from scalestudy.store.study_folder import StudyFolder

# Imported where they are used: each of them takes a part of a second.
if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from scalestudy.analysis.findings import Findings
    from scalestudy.analysis.wording.advice import Advice
    from scalestudy.report.figure import Figure


@dataclass(frozen=True)
class StudyFigure:
    """A figure of the report. Notebooks draw it."""

    figure: "Figure"

    @property
    def spec(self) -> dict[str, Any]:
        """Vega-Lite specification, in the colours of the report."""
        from scalestudy.report.figure import config

        return self.figure.spec | {"config": config()}

    @property
    def chart(self) -> "alt.TopLevelMixin":
        """Altair chart in Altair's default colours, to change or to save."""
        import altair as alt

        chart: alt.TopLevelMixin = alt.Chart.from_dict(self.figure.spec)
        return chart

    def _repr_mimebundle_(
        self,
        include: Any = None,
        exclude: Any = None,
    ) -> dict[str, Any]:
        """An interactive chart for notebooks that draw Vega-Lite, and a picture for others."""
        import altair as alt

        from scalestudy.report.figure import Picture

        # A notebook draws the major versions of Vega-Lite that it knows, by media type.
        major = alt.SCHEMA_VERSION.lstrip("v").split(".")[0]
        return {
            f"application/vnd.vegalite.v{major}+json": self.spec,
            "image/png": b64encode(Picture(self.figure).png).decode(),
            "text/plain": f"{self.figure.title}: {self.figure.caption}",
        }


class StudyResult:
    """Results of a study and the states of its points, at the time when its folder was opened."""

    def __init__(self, store: StudyFolder, overview: Overview) -> None:
        self.store = store
        self.overview = overview

    def __repr__(self) -> str:
        done = 0
        for status in self.overview.points:
            if status.state == "done":
                done += 1
        return f"<study {self.store.name}: {done} of {len(self.overview.points)} points done, {self.folder}>"

    @property
    def folder(self) -> Path:
        """The results folder."""
        return self.store.path

    @cached_property
    def findings(self) -> "Findings":
        """Everything that the report contains, computed once."""
        from scalestudy.analysis.findings import read_study

        return read_study(self.store, overview=self.overview)

    @cached_property
    def table(self) -> "pl.DataFrame":
        """One row for the points that differ only in their seed, with the columns of the CSV report."""
        from scalestudy.analysis.study_table import as_frame

        return as_frame(self.findings.rows)

    @cached_property
    def runs(self) -> "pl.DataFrame":
        """One row for each finished run, with its settings and measurements."""
        from scalestudy.analysis.study_table import runs_table

        return runs_table(self.findings.runs)

    @cached_property
    def figures(self) -> dict[str, StudyFigure]:
        """Figures of the finished runs by name: "speedup", "efficiency", …."""
        from scalestudy.report.study_document import figures

        return {figure.name: StudyFigure(figure) for figure in figures(self.findings)}

    @property
    def advice(self) -> "Advice":
        """The advised strategy and number of workers, with the reasons."""
        return self.findings.advice

    @property
    def failures(self) -> list[PointStatus]:
        """Points that failed or have corrupt records, each with its reason and its run."""
        return [*self.overview.failed, *self.overview.damaged]

    def report(self) -> Path:
        """Write the report into the results folder, and return the path of its page; may raise OSError."""
        from scalestudy.report.study_document import write_report

        return write_report(self.store, findings=self.findings)
