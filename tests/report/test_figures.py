"""Figures as specifications; `test_images.py` draws some."""

import pytest

import synthetic
import synthetic_pages
from scalestudy.analysis.findings import analyse
from scalestudy.report.against_workers import efficiency, quality, speedup
from scalestudy.report.figure import Picture
from scalestudy.report.figure_data import (
    dodge,
    domain,
    downsample,
    is_logarithmic,
    log_ticks,
    ticks,
)
from scalestudy.report.study_document import figures, places
from scalestudy.report.time_and_cost import phase_records, time_and_cost

EVERY = {"time-and-cost", "speedup", "quality", "efficiency", "phases", "loss-by-epoch"}
"""The first figure of each place."""
COUNTS = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64]


def drawn(make, runs, **options):
    """The first figure that `make` draws of runs."""
    return make(analyse("made", runs, **options))[0]


def values(figure):
    return [row for rows in figure.spec["datasets"].values() for row in rows]


def domain_of(figure):
    return figure.spec["layer"][-1]["encoding"]["y"]["scale"]["domain"]


def choices(runs):
    """For each place its first figure, and what can be chosen there."""
    found = places(figures(analyse("made", runs)))
    return {
        d.figure.name: [figure.choice for figure in (d.figure, *d.choices)]
        for d in found
    }


def test_a_study_has_the_figures_that_its_runs_can_fill_and_those_of_one_place_can_be_chosen():
    chosen = choices(synthetic.published())
    assert chosen.keys() == EVERY
    assert chosen["speedup"] == ["of throughput", "of training time"]
    assert chosen["quality"] == ["IoU"]
    assert chosen["efficiency"] == ["Scaling efficiency", "Cost efficiency"]
    assert chosen["loss-by-epoch"] == ["against epochs", "against training time"]
    assert choices(synthetic.seeded((1,), seeds=1)).keys() == EVERY - {
        "speedup",
        "efficiency",
    }
    assert choices([]) == {}


def test_speed_ups_relative_to_several_workers_lie_on_the_ideal_where_they_begin():
    runs = [
        synthetic.run("horovod", 4, throughput=400.0),
        synthetic.run("horovod", 8, throughput=720.0),
    ]
    figure = drawn(speedup, runs)
    found = {
        row["workers"]: row["value"]
        for row in values(figure)
        if row.get("strategy") == "horovod"
    }
    assert found == {4: 4.0, 8: 7.2}
    assert "n0 workers" in figure.caption and "4 workers: " in figure.caption


def costs(runs):
    (records,) = drawn(time_and_cost, runs).spec["datasets"].values()
    points = [(record["strategy"], int(record["workers"])) for record in records]
    front = {
        point for point, record in zip(points, records, strict=True) if record["front"]
    }
    ringed = [
        point
        for point, record in zip(points, records, strict=True)
        if record["advised"]
    ]
    return records, front, ringed


def test_time_against_cost_has_a_point_a_row_the_front_and_a_ring_on_the_choice():
    throughputs = {
        "native": {1: 100, 2: 180, 4: 312, 8: 540},
        "horovod": {1: 80, 2: 152, 4: 272, 8: 467},
    }
    runs = [
        synthetic.run(
            strategy,
            workers,
            seed,
            throughput=speed * (1 + 0.001 * seed),
            samples=200_000,
        )
        for strategy, series in throughputs.items()
        for workers, speed in series.items()
        for seed in range(2)
    ]
    records, front, ringed = costs(runs)
    assert len(records) == 8
    assert front == {("native", workers) for workers in (1, 2, 4, 8)}
    assert ringed == [("native", 4)]


def test_ordinary_ranges_have_logarithmic_axes_and_a_label_on_every_point_of_the_front():
    counts = (1, 2, 4, 8, 16, 32, 64, 128)
    runs = [
        synthetic.run(strategy, n, seed, throughput=100 * n**power, samples=2_000_000)
        for strategy, power in (("native", 0.9), ("horovod", 0.85), ("ddp", 0.88))
        for n in counts
        for seed in range(2)
    ]
    figure = drawn(time_and_cost, runs)
    records, front, _ = costs(runs)
    points = next(
        layer for layer in figure.spec["layer"] if layer["mark"].get("size") == 110
    )
    for field, channel in (("cost", "x"), ("time", "y")):
        shown = [record[field] for record in records]
        scale = points["encoding"][channel]["scale"]
        if max(shown) / min(shown) > 5:
            assert scale["type"] == "log"
            assert (
                0 < scale["domain"][0] < min(shown) and max(shown) < scale["domain"][1]
            )
    assert points["encoding"]["y"]["scale"]["type"] == "log"
    assert len(front) >= len(counts) - 1
    assert all(
        record["label"] == record["workers"] for record in records if record["front"]
    )


def test_ticks_of_a_logarithmic_axis_are_round_and_few():
    assert log_ticks(0.9, 60) == [1, 2, 5, 10, 20, 50]
    assert log_ticks(0.5, 20_000) == [1, 10, 100, 1000, 10_000]


def test_time_and_cost_have_intervals_in_both_directions_that_are_cut_where_they_are_long():
    seconds = {1: (100.0, 102.0, 104.0), 2: (60.0, 61.0, 62.0), 4: (20.0, 40.0, 80.0)}
    runs = synthetic.rows("native", "training_seconds", seconds)
    records, *_ = costs(runs)
    for record in records:
        for field in ("time", "cost"):
            assert record[f"{field}_low"] < record[field] < record[f"{field}_high"]
    times = [record["time"] for record in records]
    assert (
        max(record["time_high"] for record in records)
        <= max(times) + (max(times) - min(times)) / 2
    )
    assert not any("time_low" in record for record in costs(synthetic.published())[0])


def test_a_row_that_is_worse_is_faded_and_on_no_front():
    runs = [
        synthetic.run(
            "native",
            workers,
            seed,
            throughput=100.0 * workers,
            quality=quality + 0.001 * seed,
        )
        for workers, quality in ((1, 0.95), (2, 0.5))
        for seed in range(3)
    ]
    records, front, ringed = costs(runs)
    assert {int(record["workers"]): record["opacity"] < 1 for record in records} == {
        1: False,
        2: True,
    }
    assert front == {("native", 1)} and ringed == [("native", 1)]


def test_swept_values_of_several_strategies_have_panels_and_of_one_have_colours():
    both = [
        run
        for size in (8, 32)
        for run in synthetic.seeded(swept={"train.batch_size": size})
    ]
    figure = drawn(speedup, both)
    assert figure.spec["facet"]["field"] == "variant" and figure.wide
    # A layer with its own data shows all of it in each panel, so only guide lines have their own.
    layers = figure.spec["spec"]["layer"]
    assert [layer["mark"].get("strokeDash") for layer in layers if "data" in layer] == [
        [5, 4]
    ]
    one = [run for run in both if run.result.strategy == "horovod"]
    assert "facet" not in drawn(speedup, one).spec


@pytest.mark.slow
def test_every_specification_holds_against_vega_lites_schema():
    import altair

    for drawing in places(figures(analyse("made", synthetic_pages.swept()))):
        altair.Chart.from_dict(drawing.figure.spec)


def test_virtual_workers_are_in_quality_but_not_in_speed_up():
    runs = synthetic.seeded((1, 2), ("mirrored", "virtual"))
    of_quality, timed = (
        {row.get("strategy") for row in values(drawn(make, runs))}
        for make in (quality, speedup)
    )
    assert {"mirrored", "virtual"} <= of_quality and "virtual" not in timed


def test_one_run_draws_no_error_bars():
    assert not any(
        "low" in row for row in values(drawn(quality, synthetic.published(epochs=1)))
    )
    assert any(
        "low" in row
        for row in values(drawn(quality, synthetic.seeded((1, 2), ("horovod",))))
    )


def test_the_axis_of_quality_holds_the_margin_and_zero_where_there_is_one_value():
    for step, least in ((1e-4, 0.5), (0.0, 0.0)):
        runs = [synthetic.run("horovod", n, quality=0.9 + n * step) for n in (1, 2)]
        low, high = domain_of(drawn(quality, runs))
        assert least <= low < 0.9 * 0.98 and high > 0.9 * 1.02
    assert low == 0


@pytest.mark.parametrize(
    ("metric", "title", "cut"),
    [
        ("mse", "mse (validation set), lower is better", False),
        ("badness", "badness (validation set)", False),
        ("accuracy", "accuracy (validation set), higher is better", True),
    ],
)
def test_the_axis_of_quality_says_which_way_is_better_and_cuts_bars_at_0_and_1(
    metric, title, cut
):
    runs = [
        synthetic.run("horovod", n, s, metric=metric, quality=q)
        for n in (1, 2)
        for s, q in ((0, 0.2), (1, 0.6))
    ]
    figure = drawn(quality, runs)
    assert title in {
        layer["encoding"].get("y", {}).get("title") for layer in figure.spec["layer"]
    }
    lows = [row["low"] for row in values(figure) if "low" in row]
    assert (min(lows) >= 0) == cut


def test_an_interval_that_tells_nothing_hides_no_curve():
    runs = synthetic.rows(
        "horovod", "throughput", {1: (100.0, 101.0), 2: (50.0, 190.0)}
    )
    for make, most in ((speedup, 3.0), (efficiency, 1.5)):
        figure = drawn(make, runs)
        assert max(row["high"] for row in values(figure) if "high" in row) == most
        assert f"cut at 0 and {most:.3g}" in figure.caption
        assert "cut" not in drawn(make, synthetic.seeded((1, 2), ("horovod",))).caption


def test_of_many_rows_the_first_bars_are_drawn():
    findings = analyse(
        "made", synthetic.seeded(tuple(range(1, 41)), ("native", "horovod"), seeds=1)
    )
    records, *_ = phase_records(findings)
    bars = {record["bar"] for record in records}
    assert len(bars) == 30 and "native × 1" in bars


def test_ticks_are_worker_counts_that_do_not_crowd():
    assert ticks([1, 2, 4, 6, 8, 10, 12, 14]) == [1, 2, 4, 6, 8, 10, 12, 14]
    assert ticks(list(range(1, 31)))[-1] == 30 and len(ticks(list(range(1, 31)))) <= 16
    assert ticks([1, 2, 4, 8, 64, 512]) == [1, 2, 4, 8, 64, 512]


def test_the_axis_holds_every_point_even_where_set_apart():
    for counts in ([1], [1, 2], [1, 14], [1, 256]):
        low, high = domain(counts)
        shift, factor = dodge(counts, 5, 6)
        assert low < min(counts) * (2 - factor) - shift
        assert max(counts) * factor + shift < high
    assert (
        is_logarithmic([1, 8])
        and not is_logarithmic([1, 5])
        and not is_logarithmic([0, 8])
    )


def test_of_many_counts_the_ends_and_what_must_be_kept_are_kept():
    assert downsample([4, 1, 2, 2], 3) == [1, 2, 4]
    kept = downsample(COUNTS, 6, {12, 99})
    assert len(kept) == 6 and {1, 12, 64} <= set(kept)


STRATEGIES = ("single", "native", "mirrored", "multiworker", "horovod", "virtual")
STUDIES = {
    "one count": synthetic.seeded((1,), ("single",), seeds=1),
    "six strategies": synthetic.seeded((1, 4, 64, 256), STRATEGIES, seeds=2),
    "swept": [
        run
        for size in (8, 32)
        for rate in (0.1, 0.2)
        for run in synthetic.seeded(
            (1, 2), seeds=1, swept={"a.size": size, "a.rate": rate}
        )
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_every_figure_is_drawn(study):
    for drawing in places(figures(analyse("made", STUDIES[study]))):
        for figure in (drawing.figure, *drawing.choices[:2]):
            picture = Picture(figure)
            assert (
                picture.svg.startswith("<svg")
                and figure.title in picture.svg
                and "NaN" not in picture.svg
            )
        assert picture.png.startswith(b"\x89PNG") and picture.pdf.startswith(b"%PDF-")
