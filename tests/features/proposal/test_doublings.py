"""The rule that twice the workers must make a training faster by a given factor."""

import pytest

import panels
import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.features.proposal.facts import FACTS
from scalestudy.features.proposal.page import _doublings, doublings
from scalestudy.features.proposal.subject import RequestOptions


def subject(seconds: dict[int, float], seeds: int = 1):
    runs = [
        synthetic.run("native", workers, seed, training_seconds=time * (1 + 0.002 * seed))
        for workers, time in seconds.items()
        for seed in range(seeds)
    ]
    return panels.subject(analyse("study", runs), RequestOptions(workers=max(seconds)))


def test_the_published_tables_hold_as_far_as_they_do():
    published = panels.subject(analyse("u-net", synthetic.published()), RequestOptions(strategy="native"))
    measured = doublings(published)
    assert [count for count, _ in measured] == [1, 2, 4, 6]
    assert [round(factor.value or 0, 2) for _, factor in measured] == [1.97, 1.71, 1.94, 1.84]
    assert "up to 12 workers." in _doublings(published, 1.5).blocks[0].text
    assert "up to 2 workers; the next, to 4," in _doublings(published, 1.8).blocks[0].text


@pytest.mark.parametrize(
    ("seconds", "seeds", "cells"),
    [
        ({1: 100.0, 2: 55.0, 4: 40.0}, 1, ["yes, not certain", "no, not certain"]),
        ({1: 100.0, 2: 51.0, 4: 26.0}, 3, ["yes", "yes"]),
        ({1: 100.0, 2: 80.0}, 1, ["no, not certain"]),
    ],
)
def test_each_doubling_is_judged_and_what_was_run_once_is_not_certain(seconds, seeds, cells):
    sentence, table = _doublings(subject(seconds, seeds), 1.5).blocks
    assert [row[2] for row in table.rows] == cells
    assert ("not certain" in sentence.text) == (cells[0] == "yes, not certain")


@pytest.mark.parametrize(("seconds", "words"), [(80.0, "1.25 times faster"), (160.0, "1.60 times slower")])
def test_a_slowdown_is_called_one(seconds, words):
    found = subject({1: 100.0, 2: seconds})
    assert words in _doublings(found, 1.5).blocks[0].text
    assert FACTS["faster_training"](found) == words


def test_without_any_doubling_it_says_which_counts_to_run():
    (missing,) = _doublings(subject({1: 90.0, 3: 31.0}), 1.5).missing
    assert "workers = [1, 2, 4]" in missing.remedy


def test_a_series_of_which_one_count_is_left_gives_way_to_one_that_can_be_doubled():
    shared = "2 workers on the cores of 1"
    runs = [
        synthetic.run("native", 1, throughput=200.0), synthetic.run("native", 2, oversubscribed=shared),
        *(synthetic.run("horovod", n, throughput=90.0 * n) for n in (1, 2)),
    ]  # fmt: skip
    found = analyse("study", runs)
    assert [count for count, _ in doublings(panels.subject(found))] == [1]
    assert panels.subject(found, RequestOptions(strategy="native")).row.strategy == "native"
