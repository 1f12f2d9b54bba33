import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from scalestudy.data.store.encoded import decode, encode

PHOTOGRAPH = np.random.default_rng(0).integers(0, 256, (12, 17, 3)).astype(np.uint8)


def saved(pixels, form: str = "JPEG", **options) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form, **options)
    return stream.getvalue()


def shown(file: bytes, mode: str = "RGB"):
    pixels = np.asarray(Image.open(io.BytesIO(file)).convert(mode))
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def decoded(data: bytes, like):
    into = np.empty_like(like)
    decode(data, into)
    return into


@given(
    st.sampled_from(["u1", "<u2", "<f4", "<i4", "?"]),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_any_row_comes_back_bit_for_bit(dtype, shape, seed):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    noise = np.random.default_rng(seed).bytes(size)
    row = np.frombuffer(noise, "u1" if dtype == "?" else dtype).reshape(shape)
    row = row % 2 == 1 if dtype == "?" else row
    assert decoded(encode(row), row).tobytes() == row.tobytes()


@pytest.mark.parametrize(("mode", "subsampling"), [("RGB", 0), ("RGB", 2), ("L", 0)])
def test_the_jpeg_of_an_image_that_was_only_decoded_is_kept_as_it_is(mode, subsampling):
    pixels = PHOTOGRAPH if mode == "RGB" else PHOTOGRAPH[:, :, 0]
    file = saved(pixels, subsampling=subsampling)
    row = shown(file, mode)
    assert encode(row, file) == file
    assert (decoded(file, row) == row).all()


@pytest.mark.parametrize("change", ["scaled", "turned", "brighter", "sixteen bits"])
def test_the_jpeg_of_an_image_that_was_changed_is_not_kept(change):
    file = saved(PHOTOGRAPH)
    row = {
        "scaled": shown(file)[::2, ::2].copy(),
        "turned": shown(file).transpose(1, 0, 2).copy(),
        "brighter": shown(file) // 2 + 100,
        "sixteen bits": shown(file).astype(np.uint16),
    }[change]
    data = encode(row, file)
    assert data != file
    assert (decoded(data, row) == row).all()


@pytest.mark.parametrize("file", [b"", saved(PHOTOGRAPH)[:400], saved(PHOTOGRAPH, "PNG")])
def test_a_file_that_is_no_whole_jpeg_is_not_kept(file):
    data = encode(PHOTOGRAPH, file)
    assert data != file
    assert (decoded(data, PHOTOGRAPH) == PHOTOGRAPH).all()


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-7], lambda data: b"", lambda data: data[:2] + b"\0" * 40, lambda data: b"none"],
)
@pytest.mark.parametrize("file", [None, saved(PHOTOGRAPH)])
def test_damaged_bytes_are_an_error(damage, file):
    row = PHOTOGRAPH if file is None else shown(file)
    with pytest.raises(ValueError, match=r"\w"):
        decoded(damage(encode(row, file)), row)
