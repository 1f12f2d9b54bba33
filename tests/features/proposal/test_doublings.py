"""The rule that a training is so much faster on twice the workers."""

import made
import told
from scalestudy.analysis.findings import analyse
from scalestudy.features.proposal.doubling_blocks import doubling_blocks, verdict
from scalestudy.features.proposal.doublings import doublings, holds_to
from scalestudy.features.proposal.subject import Ask
from scalestudy.features.proposal.words import Missing


def study(seconds: dict[int, float], seeds: int = 1):
    runs = [
        made.run("native", workers, seed, training_seconds=time * (1 + 0.002 * seed))
        for workers, time in seconds.items()
        for seed in range(seeds)
    ]
    return analyse("study", runs, made.plan(runs))


def test_the_published_tables_hold_as_far_as_they_do():
    subject = told.subject(analyse("u-net", made.published()), Ask(strategy="native"))
    found = doublings(subject)
    assert [(each.start, each.end) for each in found] == [(1, 2), (2, 4), (4, 8), (6, 12)]
    assert [round(each.factor.value or 0, 2) for each in found] == [1.97, 1.71, 1.94, 1.84]
    assert holds_to(found, 1.5) == 12
    assert holds_to(found, 1.8) == 2


def test_it_says_up_to_which_count_it_holds_and_where_it_fails():
    subject = told.subject(study({1: 100.0, 2: 55.0, 4: 40.0, 8: 21.0}), Ask(workers=8))
    told_ = verdict(doublings(subject), 1.5, subject)
    assert "at least 1.5 times faster up to 2 workers; the next, to 4, does not." in told_
    assert "what was run once has no interval" in told_


def test_what_is_certain_is_not_called_uncertain():
    subject = told.subject(study({1: 100.0, 2: 51.0, 4: 26.0}, seeds=3))
    assert "certain" not in verdict(doublings(subject), 1.5, subject)


def test_a_rule_that_fails_at_once_says_by_how_much():
    subject = told.subject(study({1: 100.0, 2: 80.0}), Ask(workers=2))
    assert "Already 2 workers train only 1.25 times faster than 1" in verdict(
        doublings(subject), 1.5, subject
    )


def test_a_count_whose_half_was_not_measured_is_not_spoken_of():
    subject = told.subject(study({1: 90.0, 2: 46.0, 6: 17.0}), Ask(workers=6))
    assert "Half of 6 workers was not measured" in verdict(doublings(subject), 1.5, subject)


def test_without_any_doubling_it_says_which_counts_to_run():
    subject = told.subject(study({1: 90.0, 3: 31.0}), Ask(workers=3))
    found = doubling_blocks(doublings(subject), 1.5, subject)
    assert isinstance(found, Missing)
    assert found.remedy.workers == (1, 2, 4)
