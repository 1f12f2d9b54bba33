"""TIFF files that Pillow cannot read: every depth, channel and page is read unchanged or refused."""

import numpy as np
import pytest
import tifffile
from PIL import Image

from scalestudy.data.images import tiff
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
    path = write(values, byteorder=">" if dtype[0] == ">" else "<", photometric="minisblack")
    assert read_header(path).size == (40, 50)
    pixels = read_pixels(path).values
    assert pixels.shape == (1, 40, 50, 1)
    assert pixels.dtype == read_header(path).dtype
    expected = values * np.uint8(255) if dtype == "bool" else values
    assert (pixels[0, :, :, 0] == expected).all()


@pytest.mark.parametrize(
    ("compression", "big"),
    [(None, False), ("zlib", True), ("lzw", False), ("zstd", True)],
)
def test_floats_and_deep_colour_are_read_from_every_compression(write, compression, big):
    for values in (GREY.astype(np.float32) / 7, COLOUR):
        predictor = compression in ("zlib", "lzw", "zstd")
        path = write(values, compression=compression, predictor=predictor, bigtiff=big, tile=(16, 16))
        assert np.array_equal(read_pixels(path).values[0].squeeze(), values)


@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_more_channels_than_colours_are_kept(write, planar):
    cube = np.dstack([GREY + i for i in range(5)])
    stored = cube if planar == "contig" else np.moveaxis(cube, -1, 0)
    path = write(stored, photometric="minisblack", planarconfig=planar)
    assert read_header(path).channels == 5
    assert (read_pixels(path).values[0] == cube).all()


def test_a_fourth_channel_is_alpha_only_where_the_file_says_so(write):
    values = np.dstack([COLOUR, GREY]).astype(np.uint8)
    path = write(values, photometric="rgb", extrasamples=["unspecified"])
    assert read_header(path).channels == 4
    assert (read_pixels(path).values[0] == values).all()
    for dtype in (np.uint8, np.uint16):
        path = write(values.astype(dtype), photometric="rgb", extrasamples=["unassalpha"])
        assert read_header(path).channels == 3
        pixels = read_pixels(path)
        assert (pixels.values[0] == values[..., :3]).all() and pixels.see_through


def test_white_may_be_zero(write):
    negative = read_pixels(write(GREY, photometric="miniswhite")).values
    assert (negative[0, :, :, 0] == 65535 - GREY).all()
    stack = read_pixels(write(PAGES, photometric="miniswhite"), "samples").values
    assert (stack[..., 0] == 65535 - PAGES).all()


@pytest.mark.parametrize("orientation", [1, 2, 4, 5, 6, 8])
def test_deep_images_are_turned_as_pillow_turns_others(write, tmp_path, orientation):
    extra = [(274, "H", 1, orientation, True)]
    ours = read_pixels(write(COLOUR, photometric="rgb", extratags=extra)).values[0]
    header = read_header(tmp_path / "a.tif")
    assert header.size == ours.shape[:2] and header.doubtful is (orientation in (2, 4))
    exif = Image.Exif()
    exif[274] = orientation
    Image.fromarray((COLOUR >> 8).astype(np.uint8)).save(tmp_path / "b.png", exif=exif)
    assert (ours >> 8 == read_pixels(tmp_path / "b.png").values[0]).all()


def test_a_stack_is_refused_until_somebody_says_what_its_pages_are(write):
    path = write(PAGES, photometric="minisblack")
    with pytest.raises(UserError, match=r'a\.tif, a stack of 3 images.*stack = "samples"') as refused:
        read_header(path)
    assert "`stack` under [data]" in refused.value.expected
    assert read_header(path, "samples").pages == 3
    assert (read_pixels(path, "samples").values[..., 0] == PAGES).all()
    assert read_header(path, "channels").channels == 3
    assert (read_pixels(path, "channels").values[0] == np.moveaxis(PAGES, 0, -1)).all()
    assert (read_pixels(path, "first").values == GREY[None, :, :, None]).all()
    assert (read_mask(path, "samples") == PAGES).all()
    assert (read_mask(path, "first") == GREY).all()


@pytest.mark.parametrize("kind", [{"imagej": True}, {"ome": True}])
def test_what_a_microscope_calls_channels_are_channels_and_planes_are_pages(write, kind):
    path = write(PAGES, metadata={"axes": "CYX"}, **kind)
    assert (read_header(path).channels, read_header(path).pages) == (3, 1)
    assert (read_pixels(path).values[0] == np.moveaxis(PAGES, 0, -1)).all()
    both = np.stack([PAGES, PAGES + 9])
    path = write(both, metadata={"axes": "ZCYX"}, **kind)
    with pytest.raises(UserError, match="a stack of 2 images"):
        read_header(path)
    assert (read_pixels(path, "samples").values == np.moveaxis(both, 1, -1)).all()
    assert read_header(path, "channels").channels == 6


def test_a_thumbnail_beside_an_image_is_no_stack(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(GREY)
        file.write(GREY[::4, ::4])
    assert read_header(tmp_path / "a.tif").pages == 1
    assert (read_pixels(tmp_path / "a.tif").values[0, :, :, 0] == GREY).all()


def test_colours_that_would_have_to_be_converted_are_refused(write):
    path = write(
        np.stack([GREY.astype(np.uint8)] * 2), photometric="palette", colormap=np.zeros((3, 256), "u2")
    )
    with pytest.raises(UserError, match="a stack of palette images"):
        read_header(path, "samples")
    with pytest.raises(UserError, match=r"CMYK colour.*Convert it to RGB"):
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


def test_what_is_very_large_is_decoded_to_the_disk(write, monkeypatch):
    monkeypatch.setattr(tiff, "LARGEST_IN_MEMORY", 1000)
    for options in ({}, {"compression": "zlib"}):
        values = read_pixels(write(GREY.astype(np.float32), **options)).values
        base = values
        while base.base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
        assert (values[0, :, :, 0] == GREY).all()


@pytest.mark.parametrize("second", [GREY.astype(np.uint8), np.tile(GREY, (2, 2))])
def test_pages_of_another_type_or_larger_than_the_first_are_not_left_silently(tmp_path, second):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(GREY)
        file.write(second)
    with pytest.raises(UserError, match=r'a\.tif, with 1 different pages.*stack = "first"'):
        read_header(tmp_path / "a.tif")
    assert read_header(tmp_path / "a.tif", "first").left == 1
    assert (read_pixels(tmp_path / "a.tif", "first").values[0, :, :, 0] == GREY).all()
