"""A study that fills every section of the report, and documents to render as pages."""

from dataclasses import replace
from functools import cache

import panels
import synthetic
from imported_runs import imported_run
from scalestudy.analysis.findings import Findings, analyse
from scalestudy.features.proposal.panel import find_panel
from scalestudy.features.proposal.proposal_page import compose
from scalestudy.features.proposal.subject import RequestOptions
from scalestudy.report.document import Document

CORES = "launch.cpus_per_worker"
READ = "times.csv: lines 2 to 5, seconds from the column <b>time</b>."


@cache
def whole() -> Findings:
    """Three worker counts, two numbers of cores, GPUs, and imported runs."""
    runs = [
        panels.on_gpus(run)
        for cores in (2, 4)
        for run in synthetic.seeded(
            (1, 2, 4), ("mirrored",), 2, {CORES: cores}, serial=0.1 / cores
        )
    ]
    theirs = [
        imported_run(n, strategy="native", training_seconds=seconds)
        for n, seconds in ((1, 60.0), (2, 31.0))
    ]
    findings = analyse("whole", [*runs, *theirs])
    return replace(findings, readings=(READ,))


def statement_page() -> Document:
    """The proposal page of a study with GPUs that supports most of it."""
    return compose(panels.full(), find_panel("cscs"), RequestOptions()).document


def comparison_page() -> Document:
    """Two studies, one with a different setting and slower."""
    from comparison_studies import two_counts
    from scalestudy.features.compare.comparison import compare
    from scalestudy.features.compare.comparison_page import compare_document

    return compare_document(
        compare(two_counts("old"), two_counts("new_<b>", 0.8, **{"train.xla": True}))
    )
