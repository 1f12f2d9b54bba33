"""The rule that a training is so much faster on twice the workers."""

import synthetic
import told
from scalestudy.analysis.findings import analyse
from scalestudy.features.proposal.columns import Missing
from scalestudy.features.proposal.doublings import doubling_blocks, doubling_verdict, doublings
from scalestudy.features.proposal.subject import RequestOptions


def study(seconds: dict[int, float], seeds: int = 1):
    runs = [
        synthetic.run("native", workers, seed, training_seconds=time * (1 + 0.002 * seed))
        for workers, time in seconds.items()
        for seed in range(seeds)
    ]
    return analyse("study", runs, synthetic.plan(runs))


def test_the_published_tables_hold_as_far_as_they_do():
    subject = told.subject(analyse("u-net", synthetic.published()), RequestOptions(strategy="native"))
    measured = doublings(subject)
    assert [(each.start, each.end) for each in measured] == [(1, 2), (2, 4), (4, 8), (6, 12)]
    assert [round(each.factor.value or 0, 2) for each in measured] == [1.97, 1.71, 1.94, 1.84]
    assert "at least 1.5 times faster up to 12 workers." in doubling_verdict(measured, 1.5, 12)
    assert "at least 1.8 times faster up to 2 workers; the next, to 4," in doubling_verdict(measured, 1.8, 12)


def test_it_says_up_to_which_count_it_holds_and_where_it_fails():
    subject = told.subject(study({1: 100.0, 2: 55.0, 4: 40.0, 8: 21.0}), RequestOptions(workers=8))
    text = doubling_verdict(doublings(subject), 1.5, subject.row.workers)
    assert "at least 1.5 times faster up to 2 workers; the next, to 4, does not." in text
    assert "what was run once has no interval" in text


def test_what_is_certain_is_not_called_uncertain():
    subject = told.subject(study({1: 100.0, 2: 51.0, 4: 26.0}, seeds=3))
    assert "certain" not in doubling_verdict(doublings(subject), 1.5, subject.row.workers)


def test_a_rule_that_fails_at_once_says_by_how_much():
    subject = told.subject(study({1: 100.0, 2: 80.0}), RequestOptions(workers=2))
    assert "Already 2 workers train only 1.25 times faster than 1" in doubling_verdict(
        doublings(subject), 1.5, subject.row.workers
    )


def test_a_count_whose_half_was_not_measured_is_not_spoken_of():
    subject = told.subject(study({1: 90.0, 2: 46.0, 6: 17.0}), RequestOptions(workers=6))
    assert "Half of 6 workers was not measured" in doubling_verdict(
        doublings(subject), 1.5, subject.row.workers
    )


def test_without_any_doubling_it_says_which_counts_to_run():
    subject = told.subject(study({1: 90.0, 3: 31.0}), RequestOptions(workers=3))
    measured = doubling_blocks(subject, 1.5)
    assert isinstance(measured, Missing)
    assert "workers = [1, 2, 4]" in measured.remedy
