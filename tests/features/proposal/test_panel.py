"""Panel files: errors are named, shipped files state their source, and all are documented."""

from dataclasses import replace
from datetime import date
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import panels
import synthetic
from paths import PROJECT
from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.planned_training import PlannedTraining
from scalestudy.features.proposal.facts import FACTS
from scalestudy.features.proposal.missing import Missing
from scalestudy.features.proposal.page_parts import FIGURES
from scalestudy.features.proposal.panel import find_panel, parse_panel, shipped_panels
from scalestudy.features.proposal.proposal_page import compose
from scalestudy.features.proposal.resource_request import (
    ResourceRequest,
    request_blocks,
    resource_request,
    round_up,
)
from scalestudy.features.proposal.subject import RequestOptions
from scalestudy.features.proposal.table_columns import COLUMNS
from scalestudy.util.errors import UserError

DOCS = (PROJECT / "docs" / "reference" / "panels.md").read_text()
PANEL = """+++
panel = "Ours"
title = "Our page"
unit = "GPU-h"
[[sources]]
address = "https://example.org"
read = 2026-01-02
+++

## Scaling

{# Speed-up #}
On {{ workers }} it is {{ speedup }} times faster.

{{ table("workers", "speedup") }}

{{ figure("speedup") }}

{{ study.advice.strategy }} is advised.
"""


def test_a_panel_is_what_its_file_says(tmp_path):
    file = tmp_path / "ours.md.j2"
    file.write_text(PANEL)
    panel = find_panel(str(file))
    assert (panel.panel, panel.base, panel.charge) == ("Ours", "device", 1.0)
    (title, parts), *_ = panel.sections()
    assert title == "Scaling"
    assert [asks for asks, _ in parts] == ["Speed-up", "Scaling", "Scaling", "Scaling"]
    page = compose(panels.full(), panel, RequestOptions())
    assert not page.gaps and "horovod is advised." in str(page.document)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "Our page"', 'titel = "Our page"', "tit"),
        ('unit = "GPU-h"', 'unit = "h"\ncharge = 0', "charge"),
        ("read = 2026-01-02", 'read = "then"', "read"),
        ('panel = "Ours"\n', "", "panel"),
        ('panel = "Ours"\n', "panel = Ours\n", "valid TOML"),
        ("+++\npanel", "panel", "+++"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(old, new, words):
    with pytest.raises(UserError) as error:
        parse_panel(PANEL.replace(old, new), "ours.md.j2")
    assert "ours.md.j2" in str(error.value) and words in str(error.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"workers", "speedup"', '"sped"'),
        ('("speedup")', '("speed")'),
        ("study.advice", "study.advices"),
        ("{{ speedup", "{{ sped_up"),
        ("{{ speedup }}", "{{ speedup"),
        ("{{ workers }}", "{{ workers.__class__.mro() }}"),
    ],
)
def test_an_unknown_fact_column_or_figure_and_code_are_refused(old, new):
    with pytest.raises(UserError, match="Correct the panel file"):
        compose(
            panels.full(),
            parse_panel(PANEL.replace(old, new), "ours.md.j2"),
            RequestOptions(),
        )


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(UserError, match="archer2"):
        find_panel("archer")
    with pytest.raises(UserError, match="does not exist"):
        find_panel("./none.md.j2")


@pytest.mark.parametrize("name", shipped_panels())
def test_a_shipped_panel_says_where_it_comes_from_and_asks_for_something(name):
    panel = find_panel(name)
    assert panel.assumed
    assert all(
        source.address.startswith("http") and source.says for source in panel.sources
    )
    assert all(source.read >= date(2026, 11, 22) for source in panel.sources)
    parts = [part for _, parts in panel.sections() for part in parts]
    assert sum("{{ request() }}" in template for _, template in parts) == 1
    assert all(asks for asks, _ in parts)


def test_every_name_that_a_panel_may_use_and_every_panel_is_in_the_documentation():
    names = [*FACTS, *COLUMNS, *FIGURES, *shipped_panels()]
    assert [name for name in names if f"`{name}`" not in DOCS] == []


def test_the_panel_of_the_documentation_works():
    text = DOCS.partition("```jinja\n")[2].partition("```")[0]
    assert not compose(
        panels.full(), parse_panel(text, "mine.md.j2"), RequestOptions()
    ).gaps


CSC = find_panel("csc")


def requested(options=None, panel=CSC, findings=None) -> ResourceRequest:
    found = resource_request(panels.subject(findings or panels.full(), options), panel)
    assert isinstance(found, ResourceRequest)
    return found


def test_it_is_the_product_of_what_it_shows():
    options = RequestOptions(runs=40, seeds=3, workers=8, charge=0.5, reserve=0.1)
    found = requested(options)
    subject = panels.subject(panels.full(), options)
    factors = [40, 3, subject.hours(subject.row), 8, 0.5, 1.1]
    assert found.exact == pytest.approx(prod(factors))
    assert found.exact <= found.total <= found.exact * 1.01
    shown = [value for _, value, _ in found.steps]
    assert shown[:2] == ["40", "3"]
    assert "× 0.5" in shown
    assert "× 1.1" in shown


def test_everything_that_is_not_said_is_the_studys_or_the_panels():
    found = requested()
    assert [origin for _, _, origin in found.steps[:2]] == [
        "`--runs`",
        "as in this study",
    ]
    assert (found.unit, requested(RequestOptions(unit="BU")).unit) == ("GPU-h", "BU")


def test_a_node_is_charged_whole():
    device, node = (
        requested(RequestOptions(workers=8), panel=panel)
        for panel in (CSC, find_panel("hlrs"))
    )
    assert node.exact == pytest.approx(device.exact / panels.ON_A_NODE)
    assert (
        "Nodes",
        "2",
        "horovod on 8 workers (train.batch = per-worker), measured",
    ) in node.steps


def test_without_knowing_the_nodes_no_nodes_are_requested():
    found = resource_request(panels.subject(panels.small()), find_panel("hlrs"))
    assert isinstance(found, Missing) and "nodes" in found.why


def planned(epochs):
    """The full study, for trainings of another length."""
    findings = panels.full()
    criteria = replace(findings.criteria, planned=PlannedTraining(epochs))
    return analyse(findings.name, findings.runs, findings.planned, criteria)


def test_more_epochs_take_longer_by_what_repeats_in_each():
    row = panels.subject(panels.full()).row
    options = RequestOptions(strategy=row.strategy, workers=row.workers)
    hours = {
        epochs: panels.subject(planned(epochs), options).hours(row)
        for epochs in (12, 24, 48)
    }
    assert hours[12] == pytest.approx(row.wall_seconds.value / 3600, rel=1e-6)
    assert hours[48] - hours[24] == pytest.approx(2 * (hours[24] - hours[12]))
    longer = requested(options, findings=planned(24))
    assert longer.exact > requested(options).exact
    assert any("24 epochs" in origin for _, _, origin in longer.steps)


def test_a_request_is_for_the_row_that_the_planned_training_needs():
    """Start-up decides six epochs; six hundred are decided by their steps."""
    runs = [
        synthetic.run(
            "native",
            n,
            seed,
            training_seconds=12.0 * (1 + 0.002 * seed) / n,
            samples=100,
        )
        for n in (1, 2)
        for seed in range(3)
    ]
    short, long = (
        analyse(
            "short",
            runs,
            synthetic.plan(runs),
            Criteria(planned=PlannedTraining(epochs)),
        )
        for epochs in (None, 600)
    )
    assert (panels.subject(short).row.workers, panels.subject(long).row.workers) == (
        1,
        2,
    )
    request = requested(RequestOptions(runs=40), findings=long)
    assert request.exact == pytest.approx(
        40 * 3 * panels.subject(long).hours(panels.subject(long).row) * 2
    )


@pytest.mark.parametrize(
    ("cores", "told_as"), [(1, "a core-hour."), (4, "4 core-hours.")]
)
def test_without_gpus_it_says_how_many_core_hours_an_hour_of_a_worker_is(
    cores, told_as
):
    runs = [
        replace(
            run,
            ranks=tuple(
                rank.model_copy(update={"cpus": list(range(cores))})
                for rank in run.ranks
            ),
        )
        for run in synthetic.seeded((1, 2, 4), ("horovod",))
    ]
    found = requested(findings=analyse("on cores", runs))
    assert any(
        each.endswith(f"an hour of a worker is {told_as}") for each in found.assumed
    )


def test_what_was_not_measured_cannot_be_asked_for():
    with pytest.raises(UserError, match="horovod on 8 workers"):
        panels.subject(panels.full(), RequestOptions(workers=16))
    with pytest.raises(UserError, match="mirrored"):
        panels.subject(panels.full(), RequestOptions(strategy="mirrored"))
    assert panels.subject(panels.full(), RequestOptions(workers=2)).row.workers == 2


def at_chance():
    """All rows are at chance level."""
    return analyse(
        "chance",
        [
            synthetic.run(
                "native", workers, seed, metric="accuracy", quality=0.11, chance=0.12
            )
            for workers in (1, 2)
            for seed in range(3)
        ],
    )


def too_uncertain():
    """Two workers may be half or twice as fast as one."""
    throughputs = {1: (100.0, 101.0, 99.0), 2: (150.0, 60.0, 400.0)}
    return analyse(
        "uncertain",
        [
            synthetic.run(
                "native", workers, seed, throughput=throughput, samples=200_000
            )
            for workers, values in throughputs.items()
            for seed, throughput in enumerate(values)
        ],
    )


@pytest.mark.parametrize(
    ("findings", "kind"),
    [(at_chance(), "nothing-learned"), (too_uncertain(), "uncertain")],
)
def test_what_the_study_does_not_advise_is_requested_only_by_name(findings, kind):
    assert findings.advice.decision.kind == kind
    found = resource_request(panels.subject(findings), CSC)
    assert isinstance(found, Missing)
    assert "--workers" in found.remedy
    by_name = requested(RequestOptions(workers=2), findings=findings)
    assert by_name.exact > 0
    objection = panels.subject(findings, RequestOptions(workers=2)).objection
    assert objection and objection in by_name.doubt


def test_a_request_for_what_is_advised_has_no_objection_and_one_for_more_has():
    choice = panels.full().advice.decision.choice
    assert panels.subject(panels.full()).row.key == choice
    assert (
        requested().doubt
        == requested(RequestOptions(workers=choice.workers)).doubt
        == ""
    )
    subject = panels.subject(panels.full(), RequestOptions(workers=8))
    assert (subject.advised, subject.verdict.kind) == (False, "no-worse")
    assert "0.7" in requested(RequestOptions(workers=8)).doubt


def test_a_strategy_that_is_not_advised_is_requested_only_with_its_workers():
    findings = analyse("two", synthetic.seeded((1, 2), ("horovod", "mirrored")))
    other = ({"horovod", "mirrored"} - {findings.advice.decision.choice.strategy}).pop()
    assert isinstance(
        resource_request(panels.subject(findings, RequestOptions(strategy=other)), CSC),
        Missing,
    )
    assert requested(RequestOptions(strategy=other, workers=2), findings=findings).doubt


@given(st.floats(1e-9, 1e12))
def test_a_request_is_rounded_up_by_less_than_a_hundredth(value):
    found = round_up(value)
    assert value * (1 - 1e-9) <= found <= value * 1.0101
    assert round_up(found) == found
    assert found < 100 or found == int(found)


def test_zero_stays_zero_and_round_numbers_stay_themselves():
    assert [round_up(value) for value in (0.0, 1.0, 0.1, 120.0, 120.5)] == [
        0.0,
        1.0,
        0.1,
        120.0,
        121.0,
    ]


def test_a_provisional_advice_is_named_beside_its_request():
    findings = analyse("single runs", synthetic.published())
    found = requested(findings=findings)
    assert (
        findings.advice.headline.startswith("Provisionally")
        and findings.advice.headline in found.doubt
    )
    assert any(
        findings.advice.headline in getattr(block, "text", "")
        for block in request_blocks(found)
    )
