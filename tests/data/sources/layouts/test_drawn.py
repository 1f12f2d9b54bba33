"""Masks from polygons and run lengths, compared with a pixel-by-pixel reference."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.data.sources.layouts.coco import polygon, shape

SIZE = (9, 11)
corners = st.lists(
    st.tuples(st.floats(-3, 14).map(lambda x: round(x, 2)), st.floats(-3, 12).map(lambda y: round(y, 2))),
    min_size=3,
    max_size=7,
)


def inside(x, y, points):
    """Even-odd rule: whether a ray to the left of (x, y) crosses the outline an odd number of times."""
    crossings = 0
    for (x1, y1), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True):
        if (y1 <= y) != (y2 <= y):
            crossings += x1 + (y - y1) / (y2 - y1) * (x2 - x1) <= x
    return crossings % 2 == 1


@given(corners)
def test_a_pixel_belongs_to_a_polygon_if_its_centre_does(points):
    expected = [[inside(x + 0.5, y + 0.5, points) for x in range(SIZE[1])] for y in range(SIZE[0])]
    assert polygon(np.array(points, float), SIZE).tolist() == expected


def test_runs_go_down_the_columns_and_begin_with_nothing():
    mask = shape({"counts": [1, 2, 3], "size": [3, 2]}, (3, 2))
    assert mask.tolist() == [[False, False], [True, False], [True, False]]


def test_compressed_runs_are_read_by_pycocotools(monkeypatch):
    decode = SimpleNamespace(decode=lambda runs: np.full(runs["size"], runs["counts"] == "123", np.uint8))
    monkeypatch.setitem(sys.modules, "pycocotools", SimpleNamespace(mask=decode))
    assert shape({"counts": "123", "size": [3, 2]}, (3, 2)).tolist() == [[True, True]] * 3
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        shape({"counts": "123", "size": [3, 2]}, (2, 3))
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    with pytest.raises(ValueError, match="pycocotools"):
        shape({"counts": "123", "size": [3, 2]}, (3, 2))


@pytest.mark.parametrize(
    ("segmentation", "told"),
    [
        ([[1, 2, 3, 4]], "a polygon of 4 numbers"),
        ([[1, 2, 3, 4, 5]], "a polygon of 5 numbers"),
        ([[1, 2, 3, 4, 5, float("nan")]], "a polygon"),
        ({"counts": [5], "size": [3, 2]}, "runs over 5 pixels"),
        ({"counts": [7, -1], "size": [3, 2]}, "runs over 6 pixels"),
        ({"counts": [6], "size": [2, 3]}, "runs over 6 pixels"),
    ],
)
def test_what_is_neither_is_refused(segmentation, told):
    with pytest.raises(ValueError, match=told):
        shape(segmentation, (3, 2))
