"""Tiles: every pixel of an image is in exactly one core, with enough context around it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.data.images.tiles import cut, cut_mask, stitch, tiles_of

length = st.integers(1, 90)
size = st.tuples(length, length)


@st.composite
def tilings(draw):
    tile = draw(st.tuples(st.integers(2, 40), st.integers(2, 40)))
    return draw(size), tile, draw(st.integers(0, min(tile) - 1))


@given(tilings())
def test_each_pixel_of_an_image_and_of_a_mask_is_in_one_core_and_tiles_stitched_are_both(
    tiling,
):
    own, tile, overlap = tiling
    tiles, seen = tiles_of(own, tile, overlap), np.zeros(own, int)
    for each in tiles:
        seen[each.core_in_image] += 1
        rows, columns = each.core_inside
        assert (
            0 <= rows.start < rows.stop <= tile[0]
            and 0 <= columns.start < columns.stop <= tile[1]
        )
    assert (seen == 1).all()
    image = np.arange(own[0] * own[1] * 2).reshape(*own, 2)
    parts = [cut(image, each, tile) for each in tiles]
    assert all(part.shape == (*tile, 2) for part in parts)
    assert np.array_equal(stitch(parts, tiles, own), image)
    mask = (np.arange(own[0] * own[1]).reshape(own) % 7).astype(np.uint8)
    parts = [cut_mask(mask, each, tile) for each in tiles]
    counted = np.concatenate([part[part != 255] for part in parts])
    assert np.array_equal(np.sort(counted), np.sort(mask.ravel()))
    assert np.array_equal(stitch(parts, tiles, own), mask)


def test_an_image_smaller_than_a_tile_is_centred_in_it():
    (tile,) = tiles_of((3, 9), (6, 9), 2)
    assert (tile.top, tile.left) == (-1, 0)
    assert cut(np.ones((3, 9), np.uint8), tile, (6, 9))[:, 0].tolist() == [
        0,
        1,
        1,
        1,
        0,
        0,
    ]
    assert cut_mask(np.ones((3, 9), np.uint8), tile, (6, 9))[:, 0].tolist() == [
        255,
        1,
        1,
        1,
        255,
        255,
    ]
