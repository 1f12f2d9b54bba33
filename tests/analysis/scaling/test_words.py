from dataclasses import replace

import made
import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.analysis.scaling.words import limits_of


def limits(times, per_node=None, **changes):
    """What is said of exact times; with `per_node` all ranks have recorded their host."""
    runs = []
    for n, seconds in times.items():
        for seed, factor in enumerate((0.999, 1.0, 1.001)):
            found = made.run("horovod", n, seed, training_seconds=seconds * factor)
            found = replace(found, result=found.result.model_copy(update=changes))
            if per_node:
                ranks = (made.rank(n).model_copy(update={"rank": r, "host": f"n{r // per_node}"})
                         for r in range(n))  # fmt: skip
                found = replace(found, ranks=tuple(ranks))
            runs.append(found)
    (model,) = analyse("made", runs).models
    return " ".join(limits_of(model, 0.7)), model


def test_without_one_worker_the_limit_is_against_the_fewest_as_the_table_is():
    told, _ = limits({n: 10 + 90 / n for n in (2, 4, 8)})
    assert "a serial share of 10.0 %" in told
    assert "speed-up (relative to 2 workers) cannot exceed 5.5," in told  # 55 s / 10 s, not 100 s / 10 s
    assert "efficiency (relative to 2 workers) falls to 0.7 at about 7 workers" in told


def test_against_one_worker_nothing_is_called_relative():
    told, _ = limits({n: 10 + 90 / n for n in (1, 2, 4, 8)})
    assert "speed-up cannot exceed 10, and efficiency falls to 0.7 at about 5 workers" in told


BREAKS = {
    "each update": ({n: 20 + 400 / n + (200 / n if n >= 8 else 0) for n in (1, 2, 4, 8, 16, 32)}, {}, "21,"),
    "all updates": (
        {n: 20 + 400 / n + (30 if n >= 8 else 0) for n in (1, 2, 4, 8, 16, 32)},
        {"global_batch": 64, "updates": 100},
        "8.4,",
    ),
}


@pytest.mark.parametrize(("times", "changes", "limit"), BREAKS.values(), ids=BREAKS)
def test_with_a_break_share_and_limit_are_those_of_the_law_with_the_break(times, changes, limit):
    told, model = limits(times, per_node=4, **changes)
    assert model.second_node.fit is not None
    assert "a serial share of 4.8 %" in told  # 20 s of 420 s
    assert f"speed-up cannot exceed {limit}" in told
    assert model.predict(100_000).speedup.value == pytest.approx(model.limit, rel=0.001)


def test_of_growing_work_without_one_worker_the_floor_is_against_the_fewest():
    # n / T(n) = 0.02 + 0.08 n: at two workers 0.09 for each, in the end 0.08.
    times = {n: n / (0.02 + 0.08 * n) for n in (2, 4, 8)}
    runs = [
        made.run("horovod", n, seed, training_seconds=seconds, samples=1000 * n, throughput=n / seconds)
        for n, seconds in times.items()
        for seed in range(3)
    ]
    (model,) = analyse("made", runs).models
    (told,) = limits_of(model, 0.7)
    assert "a serial share of 20.0 %" in told
    assert "scaled efficiency (relative to 2 workers) does not fall below 0.89" in told
    assert model.predict(100_000).efficiency.value == pytest.approx(0.08 / 0.09, rel=0.001)
