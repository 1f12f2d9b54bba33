"""What Extra-P is given, read as its documentation says it reads."""

import made
import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.errors import UserError
from scalestudy.report.extrap import to_extrap

COUNTS = (1, 2, 4, 6, 8)


def read(text):
    """Parameters, points, and repetitions by metric, region and point, in the order of the lines."""
    parameters, points, data, metric, region = [], [], {}, "", ""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "PARAMETER":
            parameters += rest.split()
        elif word == "POINTS":
            points += [tuple(map(float, point.split())) for point in rest.strip("()").split(") (")]
        elif word == "METRIC":
            metric = rest
        elif word == "REGION":
            region = rest
        elif word == "DATA":
            data.setdefault((metric, region), []).append([float(value) for value in rest.split()])
        else:
            assert word == "#"
    return parameters, points, data


def written(runs):
    return to_extrap(analyse("made", runs))


def test_every_region_has_one_line_a_point_with_all_repetitions():
    parameters, points, data = read(written(made.seeded(COUNTS)))
    assert parameters == ["workers"]
    assert points == [(float(count),) for count in COUNTS]
    assert ("seconds", "horovod") in data and ("seconds", "mirrored->training") in data
    assert ("throughput", "horovod") in data
    assert {len(lines) for lines in data.values()} == {5}
    assert {len(values) for lines in data.values() for values in lines} == {3}


def test_values_are_those_of_the_runs():
    runs = made.seeded(COUNTS, ("horovod",))
    _, _, data = read(written(runs))
    rates = [run.result.throughput for run in runs if run.result.workers == 4]
    assert data["throughput", "horovod"][2] == pytest.approx(rates)
    phases = [run.result.phases["training"] for run in runs if run.result.workers == 4]
    assert data["seconds", "horovod->training"][2] == pytest.approx(phases)


def test_swept_numbers_are_parameters_and_swept_words_are_in_the_region():
    runs = [
        run
        for size in (8, 16)
        for name in ("adam", "sgd")
        for run in made.seeded(COUNTS, ("horovod",), 1, {"train.batch_size": size, "train.optimizer": name})
    ]
    parameters, points, data = read(written(runs))
    assert parameters == ["workers", "train.batch_size"]
    assert points == [(float(count), float(size)) for count in COUNTS for size in (8, 16)]
    assert ("throughput", "horovod (train.optimizer = adam)") in data


def test_a_strategy_without_the_points_of_the_others_is_left_out_by_name():
    text = written(made.seeded(COUNTS, ("horovod",)) + made.seeded((1, 2), ("mirrored",)))
    assert "# mirrored is left out: it shares fewer than 5 worker counts" in text
    assert {region.partition("->")[0] for _, region in read(text)[2]} == {"horovod"}


def test_oversubscribed_runs_are_no_points():
    reason = "16 workers with 1 core each on 8 cores"
    runs = [*made.seeded(COUNTS, ("horovod",)), made.run("horovod", 16, oversubscribed=reason)]
    assert (16.0,) not in read(written(runs))[1]


def test_what_was_not_measured_everywhere_is_no_region():
    runs = [made.run("horovod", n, throughput=None if n == 4 else 100.0 * n) for n in COUNTS]
    assert all(metric != "throughput" for metric, _ in read(written(runs))[2])


def test_names_of_users_stay_on_their_line():
    runs = made.seeded(COUNTS, ("horovod",), 1, {"train.note": "a\nDATA 1->2"})
    _, _, data = read(to_extrap(analyse("x\nDATA 1", runs)))
    assert {len(lines) for lines in data.values()} == {5}
    assert "horovod (train.note = a DATA 1→2)" in {region for _, region in data}


def test_fewer_than_five_worker_counts_are_refused():
    with pytest.raises(UserError, match=r"5 worker counts of a strategy.*4 at most.*Sweep more"):
        written(made.seeded((1, 2, 4, 8)))
