"""The section of `scalestudy advise` on larger runs."""

import json

import pytest

import synthetic
from larger_studies import evenly, on_gpu, unet
from scalestudy.analysis.findings import analyse
from scalestudy.features.advise.advice_page import advise_document, advise_json, advise_text, headline
from scalestudy.features.advise.goals import Goal, answer
from scalestudy.report.document import Section
from scalestudy.report.write_document import markdown


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


def test_json_has_all_numbers_and_the_page_can_be_written(findings, result):
    runs = json.loads(advise_json(findings, result))["larger_runs"][0]["runs"]
    assert [run["workers"] for run in runs][-1] == 128
    assert runs[-1]["seconds"]["low"] < runs[-1]["seconds"]["value"] < runs[-1]["seconds"]["high"]
    assert runs[0]["cost_efficiency"]["value"] == pytest.approx(1, abs=0.1)
    assert markdown(advise_document(findings, result))


@pytest.mark.parametrize("width", [80, 120, 160])
@pytest.mark.parametrize("deadline", [None, 3600.0])
def test_larger_runs_fit_on_one_screen(findings, width, deadline):
    larger = answer(findings, Goal(deadline), unet(most=4096), ["no check has timed it"] * 9)
    lines = advise_text(findings, larger, width).splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= min(width, 120)


def test_where_nothing_was_learned_a_deadline_is_answered_by_that_and_not_by_time():
    runs = [synthetic.run("native", n, metric="accuracy", quality=0.1, chance=0.12) for n in (1, 2)]
    nothing = analyse("made", runs)
    text = headline(nothing, answer(nothing, Goal(7200.0)))
    assert text.endswith(nothing.advice.headline)
    sound = analyse("made", synthetic.seeded((1, 2)))
    assert sound.advice.headline not in headline(sound, answer(sound, Goal(1.0)))
