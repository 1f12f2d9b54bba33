"""Lines of one shape: what is taken without parsing is what parsing finds, and nothing else is taken."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.seals import opened, sealed
from scalestudy.study.shapes import Shape, Shapes

FINITE = st.floats(allow_nan=False, allow_infinity=False)
LINE = {
    "epoch": 3,
    "loss": 0.25,
    "validation": {"loss": 0.5, "iou %s": 0.75},
    "resumed": False,
    "note": "NaN",
}


def line(**changes: object) -> bytes:
    return sealed(json.dumps(LINE | changes), indent=None).encode()


def test_a_sound_line_gives_its_values_with_their_places():
    shape, values = Shapes().fit(line())
    assert dict(zip(shape, map(json.loads, values), strict=True)) == {
        ("epoch",): 3, ("loss",): 0.25, ("validation", "loss"): 0.5, ("validation", "iou %s"): 0.75,
        ("resumed",): False, ("note",): "NaN",
    }  # fmt: skip


@given(st.integers(-(10**20), 10**20), FINITE, FINITE, st.booleans())
def test_what_fits_is_what_parsing_finds(epoch, loss, other, resumed):
    shapes = Shapes()
    shapes.fit(line())
    written = line(epoch=epoch, loss=loss, resumed=resumed, validation={"loss": other, "iou %s": -0.0})
    fits = shapes.fit(written)
    assert fits is not None
    table, had = opened(written)
    assert had and json.loads(fits[1][0]) == table["epoch"] and json.loads(fits[1][1]) == table["loss"]
    assert math.copysign(1, json.loads(fits[1][3])) == -1


@pytest.mark.parametrize(
    "altered",
    [
        line().replace(b"0.25", b"0.26"),
        line().replace(b'"resumed": false', b'"resumed": true'),
        line()[:-9],
        line()[:-1],
        line().replace(b'"epoch": 3', b'"epoch": 3, "epoch": 3'),
        line() + b" ",
        b"",
        b"[1, 2]",
        b'{"sha256": "' + b"0" * 64 + b'"}',
        json.dumps(LINE).encode(),
        line(lists=[1, 2]),
    ],
)
def test_what_was_altered_torn_or_never_sealed_is_left_to_the_parser(altered):
    shapes = Shapes()
    assert shapes.fit(line()) is not None
    assert shapes.fit(altered) is None


def test_lines_of_several_shapes_are_told_apart():
    shapes = Shapes()
    for _ in range(3):
        assert len(shapes.fit(line())[1]) == 6
        assert len(shapes.fit(line(validation={}))[1]) == 4


def test_a_table_that_is_not_sealed_at_its_end_has_no_shape():
    with pytest.raises(ValueError, match="end with its checksum"):
        Shape({"sha256": "0" * 64, "epoch": 1})
