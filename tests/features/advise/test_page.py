"""The section of `scalestudy advise` on larger runs."""

import json
from dataclasses import replace

import pytest

import synthetic
from larger_studies import evenly, on_gpu, unet
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.statistics import NOTHING
from scalestudy.features.advise.goals import Goal, answer
from scalestudy.features.advise.page import advise_document, advise_json, headline, sentence
from scalestudy.report.as_markdown import markdown
from scalestudy.report.document import Folded, Section, Table


@pytest.fixture(scope="module")
def findings():
    return analyse("unet", [on_gpu(evenly(run)) for run in synthetic.published()])


@pytest.fixture(scope="module")
def result(findings):
    return answer(findings, Goal(), unet(most=128))


@pytest.fixture(scope="module")
def section(findings, result):
    blocks = advise_document(findings, result).blocks
    return next(block for block in blocks if isinstance(block, Section))


def test_without_a_network_there_is_no_section_on_larger_runs(findings):
    document = advise_document(findings, answer(findings, Goal()))
    assert not any(isinstance(block, Section) for block in document.blocks)


def test_each_strategy_has_a_table_beside_what_was_measured_and_what_it_rests_on(section, result):
    tables = [block for block in section.blocks if isinstance(block, Table)]
    assert [table.name for table in tables] == ["expected-native", "expected-horovod"]
    names = [heading.name for heading in tables[0].headings]
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in tables[0].rows}
    assert rows["14"]["Measured"] and not rows["128"]["Measured"]
    assert rows["14"]["Nodes"] == "7" and rows["14"]["Lost most to"] == "waiting for the slowest worker"
    measured, idle = tables[0].footnotes
    assert "of 7 times that were measured" in measured
    assert "64 workers" in idle and "896 samples" in idle
    (assumed, *_) = (block for block in section.blocks if isinstance(block, Folded))
    assert assumed.blocks[0].rows == result.larger[0].assumptions


def test_a_sentence_says_up_to_where_it_pays_and_what_ends_it(result):
    text = sentence(result.larger[1], 0.7)
    most = max(run.workers for run in result.larger[1].runs if run.cost_efficiency.value >= 0.7)
    assert f"horovod is expected to pay up to {most} workers (range " in text and "below 0.7" in text
    assert "the most considered" in sentence(result.larger[1], 1e-9)


def test_json_has_all_numbers_and_the_page_can_be_written(findings, result):
    runs = json.loads(advise_json(findings, result))["larger_runs"][0]["runs"]
    assert [run["workers"] for run in runs][-1] == 128
    assert runs[-1]["seconds"]["low"] < runs[-1]["seconds"]["value"] < runs[-1]["seconds"]["high"]
    assert runs[0]["cost_efficiency"]["value"] == pytest.approx(1, abs=0.1)
    assert "Assumptions" in markdown(advise_document(findings, result))


def test_where_no_row_is_sound_a_missing_efficiency_decides_no_sentence(findings, result):
    series = replace(
        result.larger[1], runs=tuple(replace(run, cost_efficiency=NOTHING) for run in result.larger[1].runs)
    )
    assert "0.00" not in sentence(series, 0.7) and "0.7" not in sentence(series, 0.7)


def test_where_nothing_was_learned_a_deadline_is_answered_by_that_and_not_by_time():
    runs = [synthetic.run("native", n, metric="accuracy", quality=0.1, chance=0.12) for n in (1, 2)]
    nothing = analyse("made", runs)
    text = headline(nothing, answer(nothing, Goal("deadline", 7200.0)))
    assert text.endswith(nothing.advice.headline)
    sound = analyse("made", synthetic.seeded((1, 2)))
    assert sound.advice.headline not in headline(sound, answer(sound, Goal("deadline", 1.0)))


@pytest.mark.parametrize(("deadline", "shown"), [(7200.0, "2 h"), (5400.0, "1:30:00 h"), (90.0, "1:30 min")])
def test_a_deadline_of_whole_hours_is_shown_so(deadline, shown):
    made = analyse("made", synthetic.seeded((1, 2)))
    assert headline(made, answer(made, Goal("deadline", deadline))).endswith(f" {shown}.")
