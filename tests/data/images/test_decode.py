"""Decode one image: original depth, upright, without alpha; lossy reading is refused."""

import os
import struct
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

from scalestudy.data.images.decode import read_header, read_mask, read_pixels, refusing
from scalestudy.util.errors import UserError

GREY16 = (np.arange(48).reshape(6, 8) * 1300).astype(np.uint16)
COLOUR = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)


def png(path, depth, colour_type, rows):
    """Write a PNG without Pillow, which cannot write 16-bit colour or 2-bit grey."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    samples = {0: 1, 2: 3, 4: 2, 6: 4}[colour_type]
    width = len(rows[0]) * 8 // (depth * samples)
    header = struct.pack(">IIBBBBB", width, len(rows), depth, colour_type, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", data)
        + chunk(b"IEND", b"")
    )
    return path


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.TIFF"])
def test_sixteen_bits_are_kept(tmp_path, save, name):
    path = save(tmp_path / name, GREY16)
    header = read_header(path)
    assert (header.size, header.dtype, header.channels) == ((6, 8), np.uint16, 1)
    image = read_pixels(path)
    assert image.dtype == np.uint16
    assert (image[:, :, 0] == GREY16).all()


def test_colour_stays_colour_and_alpha_is_dropped(tmp_path, save):
    opaque = save(tmp_path / "a.png", COLOUR)
    clear = save(tmp_path / "b.png", np.dstack([COLOUR, np.full((6, 8), 9, np.uint8)]))
    for path in (opaque, clear):
        assert read_header(path).channels == 3
        assert (read_pixels(path) == COLOUR).all()


@pytest.mark.parametrize(
    ("second", "colour"), [((90, 90, 90), False), ((90, 0, 0), True)]
)
def test_a_palette_of_greys_is_grey_and_one_of_colours_is_colour(
    tmp_path, second, colour
):
    picture = Image.fromarray((GREY16 > 20000).astype(np.uint8)).convert("P")
    picture.putpalette([0, 0, 0, *second])
    picture.save(tmp_path / "a.png")
    assert read_header(tmp_path / "a.png").channels == (3 if colour else 1)
    channels = 3 if colour else 1
    values = np.unique(read_pixels(tmp_path / "a.png").reshape(-1, channels), axis=0)
    assert values.tolist() == [[0] * channels, list(second)[:channels]]


def test_photographs_are_turned_upright(tmp_path, save):
    exif = Image.Exif()
    exif[274] = 6
    path = save(
        tmp_path / "a.jpg",
        np.repeat([[0] * 8, [255] * 8], 8, axis=0).astype(np.uint8),
        exif=exif,
    )
    assert read_header(path).size == (8, 16)
    image = read_pixels(path)
    assert image.shape == (8, 16, 1)
    assert image[:, :8].mean() > 250
    assert image[:, 8:].mean() < 5


@pytest.mark.parametrize(("colour_type", "samples"), [(2, 3), (4, 2), (6, 4)])
def test_a_png_of_16_bit_colours_is_refused_rather_than_read_with_loss(
    tmp_path, colour_type, samples
):
    path = png(
        tmp_path / "deep.png", 16, colour_type, np.zeros((3, 4 * 2 * samples), np.uint8)
    )
    with pytest.raises(
        UserError, match=r"deep\.png, in Pillow's mode .*Convert it to TIFF"
    ):
        read_header(path)


def test_an_environment_that_cannot_decode_it_names_what_it_lacks(tmp_path):
    with (
        pytest.raises(UserError, match="pip install imagecodecs"),
        refusing(tmp_path / "a.tif"),
    ):
        raise ValueError("<COMPRESSION.LZW: 5> requires the 'imagecodecs' package")


@pytest.mark.parametrize(
    ("form", "told"),
    [
        *(
            (other, "no image inside of a format that is read")
            for other in ("EPS", "PPM", "JPEG2000")
        ),
        *((other, "with 3") for other in ("PNG", "GIF", "WEBP")),
    ],
)
def test_another_format_or_an_animation_under_the_name_of_a_still_is_refused(
    tmp_path, form, told
):
    frames = [Image.fromarray(np.roll(COLOUR, i, axis=0)) for i in range(3)]
    more = {"save_all": True, "append_images": frames[1:]} if "3" in told else {}
    frames[0].save(tmp_path / "a.png", format=form, **more)
    with pytest.raises(UserError, match=rf"a\.png:? {told}"):
        read_header(tmp_path / "a.png")


def test_a_gif_gives_the_colours_of_its_palette_and_as_a_mask_its_indices(tmp_path):
    indices = np.array([[0, 1], [2, 1]], np.uint8)
    picture = Image.fromarray(indices)
    picture.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90])
    picture.save(tmp_path / "a.gif")
    assert read_pixels(tmp_path / "a.gif")[1, 0].tolist() == [70, 80, 90]
    np.testing.assert_array_equal(read_mask(tmp_path / "a.gif"), indices)


def test_of_a_cameras_pictures_in_one_file_the_first_is_the_image(tmp_path):
    pictures = [
        Image.fromarray(np.full((16, 16), value, np.uint8)) for value in (200, 10)
    ]
    pictures[0].save(
        tmp_path / "a.jpg", format="MPO", save_all=True, append_images=pictures[1:]
    )
    assert read_header(tmp_path / "a.jpg").size == (16, 16)
    assert read_pixels(tmp_path / "a.jpg").min() > 190


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tif"])
def test_damaged_files_are_named(tmp_path, save, name):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    path = save(
        tmp_path / name,
        noise,
        **({"compression": "tiff_lzw"} if name.endswith("tif") else {}),
    )
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=name):
        read_pixels(path)
    path.write_text("no image")
    with pytest.raises(UserError, match=name):
        read_header(path)


def test_masks_give_their_stored_values(tmp_path, save):
    indices = (np.arange(48).reshape(6, 8) % 4).astype(np.uint8)
    assert (read_mask(save(tmp_path / "grey.png", indices)) == indices).all()
    assert (
        read_mask(save(tmp_path / "rgb.png", np.dstack([indices] * 3))) == indices
    ).all()
    picture = Image.fromarray(indices).convert("P")
    picture.putdata(indices.ravel().tolist())
    picture.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9])
    picture.save(tmp_path / "palette.png")
    assert (read_mask(tmp_path / "palette.png") == indices).all()
    assert sorted(np.unique(read_mask(save(tmp_path / "bits.png", indices > 1)))) == [
        0,
        255,
    ]
    path = png(tmp_path / "two-bit.png", 2, 0, [[0b00011011, 0b00011011]] * 6)
    assert read_mask(path).tolist() == [[0, 1, 2, 3] * 2] * 6


def test_a_coloured_mask_is_refused(tmp_path, save):
    with pytest.raises(UserError, match=r"m\.png, whose red, green and blue differ"):
        read_mask(save(tmp_path / "m.png", COLOUR))


def test_masks_of_many_bits_or_whole_floats_are_whole_numbers(tmp_path, save):
    indices = (np.arange(48).reshape(6, 8) % 4).astype(np.int32)
    for dtype in (np.uint32, np.int32, np.float32):
        assert (
            read_mask(save_tiff(tmp_path / "m.tif", indices.astype(dtype))) == indices
        ).all()
    with pytest.raises(
        UserError, match=r"m\.tif, with values that are no whole numbers"
    ):
        read_mask(save_tiff(tmp_path / "m.tif", indices.astype(np.float32) + 0.5))
    assert (
        read_mask(
            save_tiff(tmp_path / "m.tif", np.dstack([indices.astype(np.uint16)] * 3))
        )
        == indices
    ).all()


def save_tiff(path, array):
    tifffile.imwrite(path, array)
    return path


def test_a_file_that_has_gone_or_may_not_be_read_is_named(tmp_path, save, monkeypatch):
    path = tmp_path / "a.png"
    with pytest.raises(UserError, match=str(path)):
        read_header(path)
    save(path, np.zeros((2, 3), np.uint8)).chmod(0)
    if os.geteuid() == 0:  # root can read every file

        def denied(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Image, "open", denied)
    with pytest.raises(UserError, match=r"Permission denied.*Correct its permissions"):
        read_header(path)


def test_an_image_beyond_what_is_decoded(tmp_path, save, monkeypatch):
    path = save(tmp_path / "a.png", np.zeros((20, 30), np.uint8))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 250)
    with pytest.raises(UserError, match=rf"at most 500 pixels.*{path}.*tiles"):
        read_header(path)
