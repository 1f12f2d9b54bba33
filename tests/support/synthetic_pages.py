"""Every kind of page as HTML: name -> function that returns it."""

from collections.abc import Callable

import numpy as np

import synthetic
import synthetic_document
import synthetic_whole
from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.runs import Planned, Run
from scalestudy.features.data_show.inspection import (
    ClassCount,
    DataWarning,
    Inspection,
    SamplePicture,
)
from scalestudy.features.data_show.inspection_page import inspection_document
from scalestudy.report.details import gallery_document
from scalestudy.report.study_document import report_document
from scalestudy.report.write_document import html
from scalestudy.store.model_record import GalleryRecord, GallerySample

STRATEGIES = ("mirrored", "multiworker", "horovod", "virtual")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def report(
    runs: list[Run], planned: list[Planned], name: str = "<script>alert(1)</script>"
) -> str:
    """The report of synthetic runs."""
    return page(analyse(name, runs, planned))


def page(findings: Findings) -> str:
    """The report of findings."""
    return html(report_document(findings))


def swept() -> list[Run]:
    """Two strategies, three worker counts, and two further keys with two values each."""
    return [
        run
        for size in (8, 16)
        for rate in (0.1, 0.2)
        for run in synthetic.seeded(
            (1, 2, 4),
            ("mirrored", "horovod"),
            1,
            {"train.batch_size": size, "train.learning_rate": rate},
        )
    ]


def _data() -> str:
    grey = np.full((32, 48, 3), 120, np.uint8)
    inspection = Inspection(
        source="<script>alert(1)</script>",
        kind="masks",
        facts={"Type": "images"},
        count=12,
        splits={"train": 9, "validation": 3},
        sizes=[((32, 48), 12, "a.png")],
        classes=[ClassCount("cell", 12, 0.9, {"train": 9, "validation": 3})],
        warnings=[
            DataWarning(
                "duplicate", "1 image again", "Remove it.", ("a = b",), serious=True
            ),
            DataWarning(
                "empty-mask", "7 masks without any labelled pixel", "Look.", ("m.png",)
            ),
        ],
        pictures=[
            SamplePicture("images/1.png", "32 x 48, cell 10.0%", grey, grey + 20)
        ],
    )
    return html(inspection_document([inspection]))


def _gallery() -> str:
    pictures = dict.fromkeys(("image", "truth", "prediction", "difference"), PIXEL)
    sample = {
        "name": "a<b>.png",
        "roles": ["worst by loss"],
        "loss": 0.25,
        "pictures": pictures,
    }
    samples = [GallerySample.model_validate(sample)]
    record = GalleryRecord(kind="masks", considered=8, of=20, samples=samples)
    return html(gallery_document(record, "a & b"))


PAGES: dict[str, Callable[[], str]] = {
    "report": lambda: report(
        synthetic.seeded((1, 2, 4), STRATEGIES), synthetic.unfinished()
    ),
    "report-swept": lambda: report(swept(), []),
    "report-long": lambda: report(
        synthetic.seeded((1, 2, 4, 8, 16, 32), STRATEGIES), []
    ),
    "report-two-workers": lambda: report(
        synthetic.seeded((1, 2), ("horovod",), seeds=1), []
    ),
    "report-nothing-yet": lambda: report([], synthetic.unfinished()),
    "report-whole": lambda: page(synthetic_whole.whole()),
    "statement": lambda: html(synthetic_whole.statement_page()),
    "compare": lambda: html(synthetic_whole.comparison_page()),
    "document": lambda: html(synthetic_document.document()),
    "data": _data,
    "gallery": _gallery,
}
