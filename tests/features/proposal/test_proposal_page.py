"""The pages of all review panels: they hold what a study supports and name what is missing."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import panels
import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.wording.verdicts import describe_verdict
from scalestudy.features.proposal.facts import FACTS
from scalestudy.features.proposal.page_parts import doublings, doublings_part
from scalestudy.features.proposal.panel import find_panel, shipped_panels
from scalestudy.features.proposal.proposal_page import (
    MISSING,
    NO_RUN,
    ProposalPage,
    compose,
)
from scalestudy.features.proposal.subject import RequestOptions
from scalestudy.report.document import (
    Document,
    Drawing,
    Folded,
    Items,
    Paragraph,
    Section,
    Table,
)
from scalestudy.report.number_format import with_ends
from scalestudy.report.write_document import markdown
from scalestudy.util import units

PANELS = tuple(shipped_panels())


@cache
def of(panel: str, study: str) -> ProposalPage:
    findings = getattr(panels, study)()
    return compose(findings, find_panel(panel), RequestOptions())


def blocks(document: Document) -> Iterator[Any]:
    def within(inside: Any) -> Iterator[Any]:
        for block in inside:
            yield block
            if isinstance(block, Section | Folded):
                yield from within(block.blocks)

    return within(document.blocks)


def section(document: Document, title: str) -> Section | None:
    return next(
        (
            each
            for each in blocks(document)
            if isinstance(each, Section) and each.title == title
        ),
        None,
    )


def said(document: Document) -> Iterator[str]:
    """Yield all texts and cells, without the text of the panel's profile and without file names."""
    for block in blocks(document):
        if isinstance(block, Folded):
            return
        if isinstance(block, Paragraph):
            yield block.text
        elif isinstance(block, Items):
            yield from block.items
        elif isinstance(block, Table):
            yield from (cell for row in block.rows for cell in row)


@pytest.mark.parametrize("panel", PANELS)
def test_a_study_that_knows_all_leaves_nothing_open(panel):
    page = of(panel, "full")
    assert [gap.asks for gap in page.gaps] == []
    assert section(page.document, MISSING) is None
    assert any(isinstance(block, Drawing) for block in blocks(page.document))
    assert any(
        isinstance(block, Table) and block.name == "request"
        for block in blocks(page.document)
    )


def test_facts_have_the_values_of_the_study():
    subject = panels.subject(panels.full())
    row, result = subject.row, panels.full().measures.groups[subject.row.key][0].result
    # The first of 12 epochs takes a quarter longer than the others, and so does its evaluation.
    first = 0.25 / 12.25 * 1.05 * row.training_seconds.value
    start_up = sum(
        panels.full().phases[row.key][name]
        for name in ("start-up", "compile", "saving")
    )
    energy = sum(use.joules for use in result.gpus) / 3600
    values = {
        "counts": "1, 2, 4 and 8",
        "nodes": "1 node",
        "beyond_node": "2 nodes",
        "throughput": with_ends(row.throughput, 0),
        "speedup": with_ends(row.speed.steady),
        "efficiency": with_ends(row.speed.steady.scaled(1 / 2)),
        "speedup_training": with_ends(row.speed.training),
        "training_time": units.duration(row.training_seconds.value),
        "epoch_time": f"{row.training_seconds.value / 12:.1f} s",
        "start_up": units.duration(start_up + first),
        "same_work": "12,000",
        "against": "1 worker",
        "quality": f"IoU {with_ends(row.quality, 3)}",
        "energy_wh": f"{energy:.0f}",
        "watts": "501",
        "sm_percent": "80",
        "memory_percent": "40",
        "gpu_memory": "21.0",
    }
    assert {name: FACTS[name](subject) for name in values} == values


@pytest.mark.parametrize("panel", PANELS)
def test_two_workers_and_one_seed_say_less_and_what_to_run(panel):
    page = of(panel, "small")
    whole = of(panel, "full")
    assert page.gaps
    assert len(list(said(page.document))) < len(list(said(whole.document)))
    lacking = section(page.document, MISSING)
    assert lacking is not None
    assert any(
        "seed = [0, 1, 2]" in gap
        for block in lacking.blocks
        if isinstance(block, Items)
        for gap in block.items
    )
    assert "95 % interval" not in " ".join(said(page.document))


@pytest.mark.parametrize("panel", PANELS)
def test_every_page_judges_the_quality_of_what_is_asked_for(panel):
    for study in ("full", "small"):
        verdict = panels.subject(getattr(panels, study)()).verdict
        words = describe_verdict(verdict)
        assert any(words in text for text in said(of(panel, study).document))


def test_a_request_that_is_not_advised_says_so_on_its_page():
    options = RequestOptions(workers=8)
    objection = panels.subject(panels.full(), options).objection
    page = compose(panels.full(), find_panel("csc"), options).document
    assert objection and any(objection in text for text in said(page))


@pytest.mark.parametrize("panel", PANELS)
def test_without_a_finished_run_nothing_is_said_and_everything_is_missing(panel):
    page = of(panel, "nothing")
    parts = [part for _, parts in find_panel(panel).sections() for part in parts]
    assert len(page.gaps) == len(parts)
    titles = [
        block.title
        for block in page.document.blocks
        if isinstance(block, Section | Folded)
    ]
    assert titles == [MISSING, "Sources and assumptions"]
    assert "workers = [1, 2, 4]" in markdown(page.document)


def test_a_sentence_is_whole_or_not_there():
    """A sentence with a missing value is left out as a whole."""
    page = of("cscs", "small")
    assert not any(
        "{" in text or "None" in text or "n/a" in text for text in said(page.document)
    )
    assert not any("at a mean power" in text for text in said(page.document))
    gap = next(gap for gap in page.gaps if gap.asks.startswith("Energy in Wh"))
    assert {missing.why for missing in gap.missing} == {
        "no value for Energy",
        "no value for Power",
        "the number of nodes is not recorded",
    }


def test_every_fact_answers_for_every_study():
    """Each fact returns words or a reason, never an empty text."""
    for findings in (panels.full(), panels.small()):
        for name, fact in FACTS.items():
            words = fact(panels.subject(findings))
            assert words if isinstance(words, str) else words.why, name


def test_a_hostile_name_stays_a_text():
    from dataclasses import replace

    from scalestudy.report.write_document import html

    findings = replace(panels.small(), name="<script>alert('x')</script> {workers} %")
    page = compose(findings, find_panel("archer2"), RequestOptions())
    assert "<script>alert" not in html(page.document)
    assert "{workers}" in page.document.subtitle


def test_a_relative_speed_up_says_against_how_many_workers_it_is():
    """A speed-up relative to two workers must not be called a speed-up relative to one."""
    runs = synthetic.seeded(
        (2, 4, 8), ("horovod",), swept={"train.batch": "per-worker"}
    )
    for panel, unit in (
        ("nhr", "throughput, against 2"),
        ("csc", "training time, against 2"),
    ):
        page = compose(
            analyse("relative", runs), find_panel(panel), RequestOptions(workers=8)
        ).document
        words = [text for text in said(page) if "keep an efficiency" in text]
        assert len(words) == (2 if panel == "nhr" else 0) and all(
            "against 2 workers" in w for w in words
        )
        assert not any("one worker" in text for text in said(page))
        (table,) = (
            each
            for each in blocks(page)
            if isinstance(each, Table)
            and any(heading.name == "Efficiency" for heading in each.headings)
        )
        units = {head.name: head.unit for head in table.headings}
        assert units["Speed-up"] == units["Efficiency"] == unit


def test_rows_whose_cores_were_shared_are_not_presented():
    shared = "cores shared with another study"
    runs = [
        synthetic.run("native", n, oversubscribed=shared if n == 2 else None)
        for n in (1, 2, 4)
    ]
    assert [row.workers for row in panels.subject(analyse("some", runs)).rows] == [1, 4]
    found = compose(analyse("none", runs[1:2]), find_panel("csc"), RequestOptions())
    assert {missing.why for gap in found.gaps for missing in gap.missing} == {
        NO_RUN.why
    }


def subject(seconds: dict[int, float], seeds: int = 1):
    runs = [
        synthetic.run(
            "native", workers, seed, training_seconds=time * (1 + 0.002 * seed)
        )
        for workers, time in seconds.items()
        for seed in range(seeds)
    ]
    return panels.subject(analyse("study", runs), RequestOptions(workers=max(seconds)))


def test_the_published_tables_hold_as_far_as_they_do():
    published = panels.subject(
        analyse("u-net", synthetic.published()), RequestOptions(strategy="native")
    )
    measured = doublings(published)
    assert [count for count, _ in measured] == [1, 2, 4, 6]
    assert [round(factor.value or 0, 2) for _, factor in measured] == [
        1.97,
        1.71,
        1.94,
        1.84,
    ]
    assert "up to 12 workers." in doublings_part(published, 1.5).blocks[0].text
    assert (
        "up to 2 workers; the next, to 4,"
        in doublings_part(published, 1.8).blocks[0].text
    )


@pytest.mark.parametrize(
    ("seconds", "seeds", "cells"),
    [
        ({1: 100.0, 2: 55.0, 4: 40.0}, 1, ["yes, not certain", "no, not certain"]),
        ({1: 100.0, 2: 51.0, 4: 26.0}, 3, ["yes", "yes"]),
        ({1: 100.0, 2: 80.0}, 1, ["no, not certain"]),
    ],
)
def test_each_doubling_is_judged_and_what_was_run_once_is_not_certain(
    seconds, seeds, cells
):
    sentence, table = doublings_part(subject(seconds, seeds), 1.5).blocks
    assert [row[2] for row in table.rows] == cells
    assert ("not certain" in sentence.text) == ("not certain" in cells[0])


def test_without_any_doubling_it_says_which_counts_to_run():
    (missing,) = doublings_part(subject({1: 90.0, 3: 31.0}), 1.5).missing
    assert "workers = [1, 2, 4]" in missing.remedy
