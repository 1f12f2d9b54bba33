"""TIFF files: every depth and channel is read unchanged or refused."""

import numpy as np
import pytest
import tifffile
from PIL import Image

from scalestudy.data.images.decode import read_header, read_mask, read_pixels
from scalestudy.util.errors import UserError

GREY = (np.arange(40 * 50).reshape(40, 50) * 31).astype(np.uint16)
PAGES = np.stack([GREY, GREY + 1, GREY + 2])
COLOUR = np.dstack([GREY, GREY[::-1], GREY[:, ::-1]])


@pytest.fixture
def write(tmp_path):
    def write(array, **options):
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, array, **options)
        return path

    return write


@pytest.mark.parametrize("dtype", ["bool", "u1", "u4", "i2", "f2", "f8", ">u2", ">f4"])
def test_numbers_of_every_type_are_as_they_were_written(write, dtype):
    values = (GREY % 100).astype(dtype)
    path = write(
        values, byteorder=">" if dtype[0] == ">" else "<", photometric="minisblack"
    )
    assert read_header(path).size == (40, 50)
    pixels = read_pixels(path)
    assert pixels.shape == (40, 50, 1)
    assert pixels.dtype == read_header(path).dtype
    expected = values * np.uint8(255) if dtype == "bool" else values
    assert (pixels[:, :, 0] == expected).all()


@pytest.mark.parametrize(
    ("compression", "big"),
    [(None, False), ("zlib", True), ("lzw", False), ("zstd", True)],
)
def test_floats_and_deep_colour_are_read_from_every_compression(
    write, compression, big
):
    for values in (GREY.astype(np.float32) / 7, COLOUR):
        predictor = compression in ("zlib", "lzw", "zstd")
        path = write(
            values,
            compression=compression,
            predictor=predictor,
            bigtiff=big,
            tile=(16, 16),
        )
        assert np.array_equal(read_pixels(path).squeeze(), values)


@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_more_channels_than_colours_are_kept(write, planar):
    cube = np.dstack([GREY + i for i in range(5)])
    stored = cube if planar == "contig" else np.moveaxis(cube, -1, 0)
    path = write(stored, photometric="minisblack", planarconfig=planar)
    assert read_header(path).channels == 5
    assert (read_pixels(path) == cube).all()


def test_a_fourth_channel_is_alpha_only_where_the_file_says_so(write):
    values = np.dstack([COLOUR, GREY]).astype(np.uint8)
    path = write(values, photometric="rgb", extrasamples=["unspecified"])
    assert read_header(path).channels == 4
    assert (read_pixels(path) == values).all()
    for dtype in (np.uint8, np.uint16):
        path = write(
            values.astype(dtype), photometric="rgb", extrasamples=["unassalpha"]
        )
        assert read_header(path).channels == 3
        assert (read_pixels(path) == values[..., :3]).all()


def test_white_may_be_zero(write):
    negative = read_pixels(write(GREY, photometric="miniswhite"))
    assert (negative[:, :, 0] == 65535 - GREY).all()


@pytest.mark.parametrize("orientation", [1, 2, 4, 5, 6, 8])
def test_deep_images_are_turned_as_pillow_turns_others(write, tmp_path, orientation):
    extra = [(274, "H", 1, orientation, True)]
    ours = read_pixels(write(COLOUR, photometric="rgb", extratags=extra))
    header = read_header(tmp_path / "a.tif")
    assert header.size == ours.shape[:2] and header.doubtful is (orientation in (2, 4))
    exif = Image.Exif()
    exif[274] = orientation
    Image.fromarray((COLOUR >> 8).astype(np.uint8)).save(tmp_path / "b.png", exif=exif)
    assert (ours >> 8 == read_pixels(tmp_path / "b.png")).all()


@pytest.mark.parametrize("kind", [{"imagej": True}, {"ome": True}])
def test_what_a_microscope_calls_channels_are_channels_and_several_planes_are_refused(
    write, kind
):
    path = write(PAGES, metadata={"axes": "CYX"}, **kind)
    assert read_header(path).channels == 3
    assert (read_pixels(path) == np.moveaxis(PAGES, 0, -1)).all()
    path = write(np.stack([PAGES, PAGES + 9]), metadata={"axes": "ZCYX"}, **kind)
    with pytest.raises(UserError, match=r"a\.tif with 2"):
        read_header(path)


def test_a_thumbnail_beside_an_image_is_no_stack(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(GREY)
        file.write(GREY[::4, ::4])
    assert (read_pixels(tmp_path / "a.tif")[:, :, 0] == GREY).all()


def test_colours_that_would_have_to_be_converted_are_refused_but_a_mask_may_have_a_palette(
    write,
):
    indices = (GREY % 5).astype(np.uint8)
    path = write(indices, photometric="palette", colormap=np.zeros((3, 256), "u2"))
    assert (read_mask(path) == indices).all()
    with pytest.raises(UserError, match=r"of a palette.*Convert it to RGB"):
        read_header(path)
    with pytest.raises(UserError, match=r"Convert it to RGB"):
        read_header(write(np.dstack([COLOUR, GREY]), photometric="separated"))


@pytest.mark.parametrize("compression", [None, "zlib", "lzw", "zstd"])
def test_a_truncated_file_is_named_and_never_filled_with_zeros(write, compression):
    noise = np.random.default_rng(0).random((64, 64), np.float32)
    path = write(noise, compression=compression, rowsperstrip=8)
    whole = path.read_bytes()
    for length in (len(whole) // 2, len(whole) - 40):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError, match=r"a\.tif"):
            read_pixels(path)


@pytest.mark.parametrize("second", [GREY.astype(np.uint8), np.tile(GREY, (2, 2))])
def test_pages_of_another_type_or_larger_than_the_first_are_not_left_silently(
    tmp_path, second
):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(GREY)
        file.write(second)
    with pytest.raises(UserError, match=r"a\.tif with 2"):
        read_header(tmp_path / "a.tif")
