"""Rows come back bit for bit, and encoded ones as those of arrays."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from data_settings import data_of
from scalestudy.data.loader import Loader, reader_of
from scalestudy.data.samples import epoch_order
from scalestudy.data.sources.source import Contents
from scalestudy.data.store import preparation as module
from scalestudy.data.store.preparation import write_set
from scalestudy.data.store.prepared import Prepared
from scalestudy.data.store.row_files import Rows, RowsFile, decode, encode
from scalestudy.util.errors import UserError

ROWS = [b"a" * 5, b"", b"b" * 4, b"c" * 30, b"d", b"e" * 10]


@pytest.fixture
def rows(tmp_path):
    writer = RowsFile(tmp_path, "inputs")
    for row in ROWS:
        writer.write(row)
    assert sorted(writer.finish()) == ["inputs-index.npy", "inputs.bin"]
    return Rows(tmp_path, "inputs")


def test_rows_are_read_in_any_order(rows):
    assert [rows.row(i) for i in (5, 0, 3, 1, 4, 2)] == [ROWS[i] for i in (5, 0, 3, 1, 4, 2)]
    for row in (-1, 6):
        with pytest.raises(IndexError):
            rows.row(row)


def test_a_truncated_file_is_an_error(rows, tmp_path):
    os.truncate(tmp_path / "inputs.bin", 38)
    assert rows.row(2) == ROWS[2]
    with pytest.raises(OSError, match="row 3"):
        rows.row(3)


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


@pytest.fixture
def both(ready):
    def both(source, **options):
        return [ready(source, storage=kind, **options) for kind in ("arrays", "encoded")]

    return both


@pytest.fixture
def photographs(tmp_path, save):
    """A folder of two classes: ten JPEGs of noise, one grey, one rotated by its EXIF data, and a PNG."""
    draw = np.random.default_rng(0)
    for i in range(10):
        size = (24, 32) if i == 3 else (24, 32, 3)
        exif = Image.Exif()
        exif[274] = 3 if i == 4 else 1
        save(tmp_path / "set" / "ab"[i % 2] / f"{i}.jpg", draw.integers(0, 256, size, np.uint8), exif=exif)
    save(tmp_path / "set" / "a" / "last.png", draw.integers(0, 256, (24, 32, 3), np.uint8))
    return tmp_path / "set"


@pytest.fixture
def masks(tmp_path, save):
    """A folder of nine 16-bit images in two sizes, with masks."""
    draw = np.random.default_rng(1)
    for i in range(9):
        size = (12, 16 - i % 2)
        save(tmp_path / "masked" / "images" / f"{i}.png", draw.integers(0, 2**16, size, np.uint16))
        mask = draw.integers(0, 3, size, np.uint8)
        mask[0, :3] = 0, 1, 2
        save(tmp_path / "masked" / "masks" / f"{i}.png", mask)
    return tmp_path / "masked"


def equal(arrays, encoded):
    assert (arrays.storage, encoded.storage) == ("arrays", "encoded")
    for one, other in ((arrays.inputs, encoded.inputs), (arrays.targets, encoded.targets)):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert np.array_equal(one, np.asarray(other))
    return arrays.path != encoded.path


@pytest.mark.parametrize("size", [None, (10, 12)])
def test_photographs_are_the_same(both, photographs, size):
    assert equal(*both(photographs, image_size=size))


def test_images_of_16_bits_and_masks_with_padding_are_the_same(both, masks):
    arrays, encoded = both(masks, image_size=(12, 16))
    assert equal(arrays, encoded)
    assert encoded.ignore == arrays.ignore == 255


def test_jpegs_that_are_only_decoded_are_kept_as_they_are_and_others_are_not(both, photographs):
    _, encoded = both(photographs)
    content = (encoded.path / "inputs.bin").read_bytes()
    for name in encoded.names:
        own = name.endswith(".jpg") and not name.endswith("4.jpg")  # 4.jpg is rotated
        assert ((photographs / name).read_bytes() in content) == own, name


def test_rows_are_indexed_as_those_of_arrays(both, masks):
    arrays, encoded = (each.inputs for each in both(masks, image_size=(12, 16)))
    for rows in (
        0,
        -1,
        np.int64(3),
        slice(2, 7, 2),
        [4, 1],
        np.arange(9) % 2 == 0,
        np.array([[1, 2], [0, -1]]),
    ):
        assert np.array_equal(arrays[rows], encoded[rows])
    assert np.array_equal(np.stack(list(encoded)), arrays)
    with pytest.raises(TypeError, match="decoded whole"):
        encoded[0, 0]
    for missing in (9, -10):
        with pytest.raises(IndexError):
            encoded[missing]


@pytest.mark.parametrize("first", [0, 2])
def test_every_worker_reads_the_same_batches_from_the_start_or_from_the_middle_of_an_epoch(
    both, masks, first
):
    order = epoch_order(np.arange(9), 0, 3)
    for rank in range(2):
        one, other = (
            list(
                Loader(reader_of(each), slices=[(rank, rank + 1)], workers=2, global_batch=4).epoch(
                    order, first, epoch=3
                )
            )
            for each in both(masks, image_size=(12, 16))
        )
        assert len(one) == len(other) == 3 - first
        for (a,), (b,) in zip(one, other, strict=True):
            assert np.array_equal(a.inputs, b.inputs) and np.array_equal(a.targets, b.targets)
            assert a[2:] == b[2:]


def test_a_damaged_row_is_refused_by_name_where_it_is_read(both, masks):
    _, encoded = both(masks, image_size=(12, 16))
    start, stop = np.load(encoded.path / "inputs-index.npy")[5:7].tolist()
    with open(encoded.path / "inputs.bin", "r+b") as stream:
        stream.seek((start + stop) // 2)
        stream.write(b"\xff" * 8)
    again = Prepared.open(encoded.path)
    assert np.array_equal(again.inputs[4], encoded.inputs[4])
    with pytest.raises(UserError, match="row 5 of") as refused:
        again.inputs[3:8]
    assert str(encoded.path) in refused.value.received


@pytest.mark.parametrize("name", ["inputs-index.npy", "inputs.bin", "targets-index.npy"])
def test_a_set_with_a_truncated_or_missing_file_is_made_anew(both, masks, ready, name):
    _, encoded = both(masks, image_size=(12, 16))
    for change in (lambda file: file.write_bytes(file.read_bytes()[:-1]), lambda file: file.unlink()):
        change(encoded.path / name)
        with pytest.raises(UserError, match=name):
            Prepared.open(encoded.path)
        assert ready(masks, image_size=(12, 16), storage="encoded") == encoded
        assert np.asarray(encoded.inputs).any()


def test_what_it_takes_is_told_and_less_than_arrays_take(both, tmp_path, save):
    for i in range(4):
        save(tmp_path / "flat" / "ab"[i % 2] / f"{i}.png", np.full((64, 64), i, np.uint8))
    arrays, encoded = both(tmp_path / "flat")
    assert arrays.bytes == arrays.decoded_bytes == encoded.decoded_bytes == 4 * (64 * 64 + 4)
    assert encoded.bytes == sum((encoded.path / name).stat().st_size for name in encoded.files)
    assert encoded.bytes < arrays.bytes / 10
    assert set(json.loads((encoded.path / "meta.json").read_text())["arrays"]) == {
        "inputs.bin",
        "inputs-index.npy",
        "targets.npy",
    }


def test_where_it_is_left_open_arrays_are_made_if_they_fit_and_what_is_there_is_taken(
    masks, ready, monkeypatch, tmp_path
):
    asked = {"image_size": (12, 16), "cache": tmp_path / "cache"}
    needed, kept = module.find_set(data_of(masks, **asked)).predicted_bytes()
    assert kept == "arrays"
    monkeypatch.setattr(module, "memory_limit", lambda: needed - 1)
    assert module.find_set(data_of(masks, **asked)).predicted_bytes() == (needed, "encoded")
    encoded = ready(masks, **asked)
    assert encoded.storage == "encoded"
    monkeypatch.undo()
    assert ready(masks, **asked) == module.find_prepared(data_of(masks, **asked)) == encoded
    arrays = ready(masks, **asked, storage="arrays")
    assert arrays.storage == "arrays"
    assert ready(masks, **asked) == arrays


READS = """
import re, sys
import numpy as np
from scalestudy.data.loader import Loader
from scalestudy.data.store.prepared import Prepared
from scalestudy.data.loader import reader_of

def most():
    return 1024 * int(re.search("VmHWM:(.*) kB", open("/proc/self/status").read())[1])

prepared = Prepared.open(sys.argv[1])
loader = Loader(reader_of(prepared), slices=[(0, 1)], workers=1, global_batch=1)
before, total = most(), 0
for (part,) in loader.epoch(np.arange(prepared.count)[::-1], epoch=0):
    total += int(part.inputs[0, 0, 0, 0, 0])
print(total, most() - before, prepared.decoded_bytes)
"""


class Large:
    """A source of 240 images of 256 KiB, created on demand; image i has grey value i."""

    kind, label, identity, fingerprint = "classes", "large", "large", "large"

    def contents(self):
        return Contents(240, (512, 512, 1), np.dtype(np.uint8), 1 / 255, None, {})

    def rows(self):
        return ((np.full((512, 512, 1), row, np.uint8), row % 2) for row in range(240))

    def class_names(self):
        return ["even", "odd"]


@pytest.mark.slow
def test_a_set_ten_times_as_large_as_the_memory_taken_is_read_whole(tmp_path):
    write_set(Large(), Large().contents(), tmp_path, None, "encoded")
    told = subprocess.check_output([sys.executable, "-c", READS, tmp_path], text=True)
    total, taken, decoded = map(int, told.split())
    assert total == sum(range(240))
    assert decoded >= 240 * 2**18
    assert 0 < 10 * taken < decoded
