from dataclasses import replace

import pytest
from made_diagnosis import WHOLE, made

from scalestudy.features.diagnose.waterfall import steps, waterfall
from scalestudy.report.images import draw


def test_bars_lead_from_the_ideal_to_the_efficiency_without_a_gap():
    bars = steps(made())
    assert [bar["label"] for bar in bars] == [
        "Ideal", "Input", "Exchange", "Imbalance", "Contention", "Fixed cost", "Rest", "E(2)",
    ]  # fmt: skip
    at = 100.0
    for bar in bars[1:-1]:
        assert (bar["end"] if bar["kind"] == "lost" else bar["start"]) == pytest.approx(at)
        at = bar["start"] if bar["kind"] == "lost" else bar["end"]
    assert at == pytest.approx(bars[-1]["end"]) == pytest.approx(50.0)


def test_a_part_that_gains_has_a_colour_of_its_own_and_its_sign():
    bars = steps(made([replace(WHOLE, without_exchange=0.09)]))
    exchange = next(bar for bar in bars if bar["label"] == "Exchange")
    assert (exchange["kind"], exchange["text"]) == ("gained", "+10.0 %")


def test_one_round_has_no_intervals_and_says_nothing_of_them():
    assert not any("low" in bar for bar in steps(made()))
    assert "95 %" not in waterfall(made()).caption
    several = made([WHOLE, replace(WHOLE, whole=0.11)])
    assert "95 %" in waterfall(several).caption


def test_the_figure_can_be_drawn():
    assert draw(waterfall(made([WHOLE, replace(WHOLE, whole=0.11)]))).svg.count("E(2)") >= 1
