import json

import pytest

import synthetic
import synthetic_pages
from scalestudy.analysis.findings import analyse
from scalestudy.report.axes import dodge, domain, is_logarithmic, ticks
from scalestudy.report.curves import losses
from scalestudy.report.figure import first_of_groups
from scalestudy.report.figures import figures
from scalestudy.report.images import draw
from scalestudy.report.series import phases
from scalestudy.report.style import config, ramp
from scalestudy.study.strategies import traits
from scalestudy.util import units

EVERY = {"time-and-cost", "speedup", "quality", "efficiency", "phases", "loss-by-epoch"}
"""What stands first in its place."""


def names(runs):
    return {figure.name for figure in first_of_groups(figures(analyse("made", runs)))}


def values(figure):
    return [row for rows in figure.spec["datasets"].values() for row in rows]


def find(runs, name):
    return next(figure for figure in figures(analyse("made", runs)) if figure.name == name)


def test_a_study_with_several_worker_counts_has_every_figure():
    assert names(synthetic.published()) == EVERY


def test_one_worker_count_has_no_speed_up_to_draw():
    assert names(synthetic.seeded((1,))) == EVERY - {"speedup", "efficiency"}


def marks(figure):
    return {layer["mark"]["type"] for layer in figure.spec["layer"] if "series" in str(layer["encoding"])}


def test_two_counts_are_points_and_three_are_joined():
    assert "line" not in marks(find(synthetic.seeded((1, 2), ("horovod",)), "speedup"))
    assert "line" in marks(find(synthetic.seeded((1, 2, 4), ("horovod",)), "speedup"))
    assert "not a curve" in find(synthetic.seeded((1, 2), ("horovod",)), "speedup").caption


def test_the_asked_for_cost_efficiency_is_drawn_and_named_without_a_page_around_it():
    figure = find(synthetic.seeded((1, 2), ("horovod",)), "cost-efficiency")
    assert "0.7" in figure.caption
    assert "asked: 0.7" in json.dumps(figure.spec)
    assert "asked" not in json.dumps(find(synthetic.seeded((1, 2), ("horovod",)), "efficiency").spec)


def test_beside_every_speed_up_stands_what_it_is_a_multiple_of():
    runs = synthetic.seeded((1, 2, 4), ("horovod",))
    row = analyse("made", runs).rows[0]
    seconds = units.duration(row.training_seconds.value)
    absolute = {
        "speedup": f"1 worker: {row.throughput.value:.1f} samples/s (horovod)",
        "efficiency": f"1 worker: {row.throughput.value:.1f} samples/s (horovod)",
        "speedup-training": f"1 worker: {seconds} (horovod)",
        "speedup-wall": f"1 worker: {units.duration(row.wall_seconds.value)} (horovod)",
    }
    for name, words in absolute.items():
        assert words in find(runs, name).caption
    assert "2 workers: " in find([run for run in runs if run.result.workers > 1], "speedup").caption


def test_the_speed_up_of_wall_clock_can_be_chosen_beside_the_steady_one():
    runs = synthetic.seeded((1, 2, 4), ("horovod",))
    places = [figure.name for figure in figures(analyse("made", runs)) if figure.group == "speedup"]
    assert places == ["speedup", "speedup-training", "speedup-wall"]
    rows = {row.workers: row.speed.wall.value for row in analyse("made", runs).rows}
    records = values(find(runs, "speedup-wall"))
    drawn = {each["workers"]: each["value"] for each in records if {"workers", "value"} <= each.keys()}
    assert drawn == pytest.approx(rows, rel=1e-3)


def time_and_cost(runs):
    """Records of the figure of the decision: its points, those of the front, those with a ring."""
    figure = find(runs, "time-and-cost")
    (records,) = figure.spec["datasets"].values()
    points = [(each["strategy"], int(each["workers"])) for each in records]
    front = {point for point, each in zip(points, records, strict=True) if each["front"]}
    ringed = [point for point, each in zip(points, records, strict=True) if each["advised"]]
    return figure, points, front, ringed


def test_time_against_cost_has_a_point_a_row_the_front_and_a_ring_on_the_choice():
    throughputs = {"native": {1: 100, 2: 180, 4: 312, 8: 540}, "horovod": {1: 80, 2: 152, 4: 272, 8: 467}}
    runs = [
        synthetic.run(strategy, workers, seed, throughput=speed * (1 + 0.001 * seed), samples=200_000)
        for strategy, series in throughputs.items()
        for workers, speed in series.items()
        for seed in range(3)
    ]
    findings = analyse("made", runs)
    figure, points, front, ringed = time_and_cost(runs)
    assert sorted(points) == sorted((row.strategy, row.workers) for row in findings.rows)
    assert front == {("native", workers) for workers in (1, 2, 4, 8)}
    assert ringed == [("native", 4)]
    filters = [layer["transform"][0]["filter"] for layer in figure.spec["layer"] if "transform" in layer]
    assert filters == ["datum.front", "datum.advised", "datum.label"]


def test_a_row_that_is_worse_is_faded_and_on_no_front():
    runs = [
        synthetic.run("native", workers, seed, throughput=100.0 * workers, quality=quality + 0.001 * seed)
        for workers, quality in ((1, 0.95), (2, 0.5))
        for seed in range(3)
    ]
    figure, _, front, ringed = time_and_cost(runs)
    (records,) = figure.spec["datasets"].values()
    assert {int(each["workers"]): each["opacity"] < 1 for each in records} == {1: False, 2: True}
    assert front == {("native", 1)} and ringed == [("native", 1)]


def test_a_series_alone_has_no_legend():
    assert '"legend": {' not in json.dumps(find(synthetic.seeded((1, 2, 4), ("horovod",)), "speedup").spec)


def test_series_are_named_where_they_end_in_places_apart():
    rows = [
        row for row in values(find(synthetic.seeded(), "quality")) if "place" in row and "value" not in row
    ]
    assert {row["series"] for row in rows} == {"mirrored", "horovod"}
    low, high = domain_of(find(synthetic.seeded(), "quality"))
    one, other = sorted(row["place"] for row in rows)
    assert (other - one) / (high - low) * 220 >= 14.9


def test_swept_values_of_several_strategies_have_panels_and_of_one_have_colours():
    both = [run for size in (8, 32) for run in synthetic.seeded(swept={"train.batch_size": size})]
    figure = find(both, "speedup")
    assert figure.spec["facet"]["field"] == "variant" and figure.wide
    one = [run for run in both if run.result.strategy == "horovod"]
    assert "facet" not in find(one, "speedup").spec
    # A layer with data of its own would show all of them in each panel: only lines to read by have.
    layers = figure.spec["spec"]["layer"]
    assert [layer["mark"].get("strokeDash") for layer in layers if "data" in layer] == [[5, 4]]


def test_every_recorded_metric_and_measure_can_be_chosen():
    found = figures(analyse("made", synthetic.seeded((1, 2))))
    assert [figure.choice for figure in found if figure.group == "quality"][:1] == ["IoU"]
    assert {
        "Scaling efficiency",
        "Cost efficiency",
        "Throughput",
        "Training time",
        "Time to train, from start to result",
        "CPU utilisation",
        "Peak memory",
    } <= {figure.choice for figure in found if figure.group == "efficiency"}


def test_every_specification_holds_against_vega_lites_schema():
    import altair

    found = figures(analyse("made", synthetic_pages.swept()))
    for figure in first_of_groups(found):
        altair.Chart.from_dict(figure.spec)


def test_of_many_rows_some_bars_are_drawn():
    runs = synthetic.seeded(tuple(range(1, 41)), ("native", "horovod"), seeds=1)
    figure = find(runs, "phases")
    bars = {row["bar"] for row in values(figure)}
    assert len(bars) <= 30 and {"native × 1", "horovod × 40"} <= bars
    assert f"Of 80 rows, {len(bars)} are drawn." in figure.caption


def test_nothing_finished_nothing_drawn():
    assert names([]) == set()


def test_virtual_workers_are_in_quality_but_not_in_speed_up():
    runs = synthetic.seeded((1, 2), ("mirrored", "virtual"))
    assert {"mirrored", "virtual"} <= {row.get("strategy") for row in values(find(runs, "quality"))}
    assert "virtual" not in {row.get("strategy") for row in values(find(runs, "speedup"))}


def test_a_strategy_keeps_its_colour_in_every_figure():
    for name in ("speedup", "quality", "efficiency"):
        text = str(find(synthetic.seeded((1, 2), ("horovod",)), name).spec)
        assert traits("horovod").colour in text
        assert "triangle-down" in text


def test_one_run_draws_no_error_bars():
    assert not any("low" in row for row in values(find(synthetic.published(), "quality")))
    assert any("low" in row for row in values(find(synthetic.seeded(), "quality")))


def domain_of(figure):
    return figure.spec["layer"][-1]["encoding"]["y"]["scale"]["domain"]


def test_one_value_alone_has_a_scale_from_zero_and_one_row_no_figure_of_quality():
    alike = [synthetic.run("horovod", n, quality=0.9) for n in (1, 2)]
    assert domain_of(find(alike, "quality"))[0] == 0
    assert domain_of(find(synthetic.seeded((1, 2), ("horovod",)), "quality"))[0] > 0
    assert "quality" not in names(synthetic.seeded((1,), ("single",)))


def test_differences_of_quality_below_the_margin_do_not_fill_the_figure():
    runs = [synthetic.run("horovod", n, quality=0.9 + n / 10_000) for n in (1, 2)]
    low, high = domain_of(find(runs, "quality"))
    assert low < 0.9 * 0.98 and high > 0.9 * 1.02


@pytest.mark.parametrize(("name", "most"), [("speedup", 3.0), ("efficiency", 1.5)])
def test_an_interval_that_tells_nothing_hides_no_curve(name, most):
    runs = [
        synthetic.run("horovod", workers, seed, throughput=throughput)
        for workers, pair in ((1, (100.0, 101.0)), (2, (50.0, 190.0)))
        for seed, throughput in enumerate(pair)
    ]
    figure = find(runs, name)
    assert max(row["high"] for row in values(figure) if "high" in row) == most
    assert f"cut at 0 and {most:.3g}" in figure.caption
    assert "cut" not in find(synthetic.seeded(), name).caption


def test_long_trainings_are_thinned_but_keep_their_last_epoch():
    records, unit, _ = losses(analyse("made", [synthetic.run(epochs=200, training_seconds=7535.0)]))
    assert len(records) < 2 * 65
    assert max(record["epoch"] for record in records) == 200
    assert unit == "min"


def test_losses_that_are_no_numbers_are_left_out():
    run = synthetic.run(epochs=2)
    broken = run.epochs[1].model_copy(update={"loss": float("nan"), "validation": {}})
    records, *_ = losses(analyse("made", [synthetic.Run(run.result, (run.epochs[0], broken))]))
    assert [(record["epoch"], record["set"]) for record in records] == [(1, "training"), (1, "validation")]


def test_many_small_phases_are_put_together():
    run = synthetic.run()
    many = {f"phase {index}": 10.0 - index for index in range(10)}
    result = run.result.model_copy(update={"phases": many, "wall_seconds": sum(many.values())})
    records, shown, _ = phases(analyse("made", [synthetic.Run(result)]))
    assert len(shown) == 7
    assert shown[-1] == "other"
    assert sum(record["time"] for record in records) == pytest.approx(sum(many.values()))


@pytest.mark.parametrize(
    "runs",
    [
        synthetic.seeded((1,), ("single",), seeds=1),
        synthetic.seeded((1, 2)),
        synthetic.published(epochs=1),
        synthetic.seeded(
            (1, 4, 64, 256), ("single", "native", "mirrored", "multiworker", "horovod", "virtual")
        ),
        synthetic.seeded(swept={"train.batch_size": 8}) + synthetic.seeded(swept={"train.batch_size": 32}),
    ],
    ids=["one count", "two counts", "one epoch", "six strategies", "swept"],
)
def test_every_figure_is_drawn_as_png_and_svg(runs):
    for figure in figures(analyse("made", runs)):
        picture = draw(figure)
        assert picture.png.startswith(b"\x89PNG")
        assert picture.svg.startswith("<svg")
        assert figure.title in picture.svg
        assert "NaN" not in picture.svg


def test_ticks_are_worker_counts_that_do_not_crowd():
    assert ticks([1, 2, 4, 6, 8, 10, 12, 14]) == [1, 2, 4, 6, 8, 10, 12, 14]
    assert ticks([1]) == [1]
    assert ticks(list(range(1, 31)))[-1] == 30
    assert len(ticks(list(range(1, 31)))) <= 16
    assert ticks([1, 2, 4, 8, 64, 512]) == [1, 2, 4, 8, 64, 512]


def test_the_axis_holds_every_point_even_where_set_apart():
    for counts in ([1], [1, 2], [1, 14], [1, 256]):
        low, high = domain(counts)
        shift, factor = dodge(counts, 5, 6)
        assert low < min(counts) * (2 - factor) - shift
        assert max(counts) * factor + shift < high
    assert is_logarithmic([1, 32])
    assert not is_logarithmic([1, 14])


def test_dark_and_light_differ_in_ink_only():
    light, dark = config(), config(dark=True)
    assert light.keys() == dark.keys()
    assert light["axis"]["labelColor"] != dark["axis"]["labelColor"]
    assert len(set(ramp(14))) == 14


def titles(figure):
    layers = figure.spec["layer"]
    return {layer["encoding"]["y"]["title"] for layer in layers if "title" in layer["encoding"].get("y", {})}


@pytest.mark.parametrize(
    ("options", "title", "words"),
    [
        ({"metric": "mse"}, "mse (validation set), lower is better", "rising means"),
        ({"metric": "accuracy"}, "accuracy (validation set), higher is better", "falling means"),
        ({"metric": "badness"}, "badness (validation set)", "a change to the bad means"),
        (
            {"metric": "badness", "better": "lower"},
            "badness (validation set), lower is better",
            "rising means",
        ),
    ],
)
def test_the_axis_of_quality_says_which_way_is_better(options, title, words):
    figure = find([synthetic.run("horovod", n, quality=0.4, **options) for n in (1, 2)], "quality")
    assert title in titles(figure)
    assert words in figure.caption


@pytest.mark.parametrize(("metric", "cut"), [("mse", False), ("accuracy", True)])
def test_only_bars_of_what_is_known_to_lie_between_0_and_1_are_cut_there(metric, cut):
    runs = [
        synthetic.run("horovod", n, s, metric=metric, quality=q)
        for n in (1, 2)
        for s, q in ((0, 0.2), (1, 0.6))
    ]
    lows = [row["low"] for row in values(find(runs, "quality")) if "low" in row]
    assert (min(lows) >= 0) == cut


def test_speed_ups_relative_to_several_workers_lie_on_the_ideal_where_they_begin():
    runs = [synthetic.run("horovod", 4, throughput=400.0), synthetic.run("horovod", 8, throughput=720.0)]
    drawn = find(runs, "speedup")
    found = {row["workers"]: row["value"] for row in values(drawn) if row.get("strategy") == "horovod"}
    assert found == {4: 4.0, 8: 7.2}
    assert "drawn n0 times as high" in drawn.caption
