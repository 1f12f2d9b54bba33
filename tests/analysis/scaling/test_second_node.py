import random

import pytest

from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling.choose import choose
from scalestudy.analysis.scaling.second_node import second_node
from scalestudy.analysis.scaling.series import Series


def series(times, per_node=4, runs=3, noise=0.005, update="growing", work="strong", seed=3):
    made = random.Random(seed)
    counts = [n for n in times for _ in range(runs)]
    return Series(
        key=Key("horovod", min(times), "{}"),
        counts=tuple(counts),
        seconds=tuple(times[n] * made.lognormvariate(0, noise) for n in counts),
        work=work,
        samples=6000,
        update=update,
        updates=1000.0,
        nodes={n: -(-n // per_node) for n in times},
    )


def looked(each):
    return second_node(each, choose(each.counts, each.seconds, each.work))


BROKEN = {n: 5 + 95 / n + (20 / n if n > 4 else 0) for n in (1, 2, 4, 8, 12, 16)}
SMOOTH = {n: 5 + 95 / n for n in (1, 2, 4, 8, 12, 16)}


def test_updates_that_take_longer_from_the_second_node_on_are_found_with_by_how_much():
    found = looked(series(BROKEN))
    assert found.at == 8
    # 20/n s over 1000/n updates.
    assert found.per_update == pytest.approx(0.020, rel=0.25)
    assert found.sentence.startswith("From the second node on (8 workers) each update takes")
    assert found.fit.seconds(32) == pytest.approx(5 + 115 / 32, rel=0.05)


def test_a_fixed_global_batch_has_as_many_updates_at_every_count():
    times = {n: 5 + 95 / n + (8 if n > 4 else 0) for n in (1, 2, 4, 8, 12, 16)}
    assert looked(series(times, update="fixed")).per_update == pytest.approx(0.008, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_without_a_break_there_is_no_sign_of_one(seed):
    found = looked(series(SMOOTH, seed=seed))
    assert found.fit is None
    assert found.sentence == "There is no sign of a break at the second node."


def test_communication_that_grows_smoothly_is_no_break():
    times = {n: 5 + 95 / n + 1.0 * n for n in (1, 2, 3, 4, 8, 12, 16)}
    assert looked(series(times)).fit is None


@pytest.mark.parametrize("counts", [(1, 2, 4, 8), (1, 2, 3, 4, 8), (4, 8, 12, 16, 20)])
def test_too_few_counts_on_a_side_tell_nothing(counts):
    found = looked(series({n: BROKEN.get(n, 5 + 115 / n) for n in counts}))
    assert found.fit is None
    assert "cannot be told" in found.sentence


def test_on_one_node_nothing_is_said():
    assert looked(series(SMOOTH, per_node=16)) is None


def test_of_growing_work_nothing_is_said():
    assert looked(series(dict.fromkeys(SMOOTH, 100.0), work="weak")) is None
