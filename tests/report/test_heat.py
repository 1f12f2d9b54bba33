"""Heat maps of two swept keys."""

from functools import cache
from itertools import product

import synthetic
import synthetic_pages
from scalestudy.analysis.findings import analyse
from scalestudy.report.heat import heat_maps, swept_axes


@cache
def maps():
    return heat_maps(analyse("made", synthetic_pages.swept()))


def cells(figure):
    return [row for rows in figure.spec["datasets"].values() for row in rows if "across" in row]


def test_two_swept_keys_have_a_map_of_each_measure():
    found = {figure.name: figure for figure in maps()}
    assert set(found) == {"heat-throughput", "heat-quality", "heat-efficiency", "heat-training-seconds"}
    assert {figure.group for figure in found.values()} == {"heat"}
    drawn = cells(found["heat-throughput"])
    assert {(cell["across"], cell["down"]) for cell in drawn} == {
        (a, b) for a in ("8", "16") for b in ("0.1", "0.2")
    }
    assert {cell["panel"] for cell in drawn} == {
        f"{s} × {n}" for s in ("mirrored", "horovod") for n in (1, 2, 4)
    }


def test_numbers_stand_in_their_order():
    figure = maps()[0]
    assert figure.spec["spec"]["layer"][0]["encoding"]["x"]["sort"] == ["8", "16"]


def test_numbers_on_light_tiles_are_dark():
    drawn = cells(maps()[0])
    largest, smallest = (pick(drawn, key=lambda cell: cell["value"]) for pick in (max, min))
    assert largest["light"] and not smallest["light"]


def test_one_swept_key_has_no_map():
    runs = [
        run
        for size in (8, 16)
        for run in synthetic.seeded((1, 2), ("horovod",), 1, {"train.batch_size": size})
    ]
    findings = analyse("made", runs)
    assert swept_axes(findings) is None and heat_maps(findings) == []


def test_a_third_key_is_named_in_the_panels():
    swept = [{"a.x": x, "a.y": y, "a.z": z} for x, y, z in product((1, 2, 3), (1, 2), ("p", "q"))]
    runs = [synthetic.run("horovod", 2, swept=each) for each in swept]
    findings = analyse("made", runs)
    assert swept_axes(findings) == ("a.x", "a.y")
    figure = next(figure for figure in heat_maps(findings) if figure.name == "heat-throughput")
    assert {cell["panel"] for cell in cells(figure)} == {"horovod × 2, z = p", "horovod × 2, z = q"}
