import made

from scalestudy.analysis.findings import analyse
from scalestudy.report.cards import cards


def shown(counts):
    found = cards(analyse("made", made.seeded(counts, ("horovod",))))
    return {card.name: card.remark for card in found}


def test_the_worker_time_of_the_baseline_is_that_of_its_workers():
    assert shown((1, 2, 4))["Worker time a training"].endswith(" with 1 worker")
    assert shown((2, 4, 8))["Worker time a training"].endswith(" with 2 workers")


def test_a_relative_speed_up_says_against_what():
    assert shown((2, 4, 8))["Speed-up"].endswith(", relative to 2 workers")
    assert "relative" not in shown((1, 2, 4))["Speed-up"]
