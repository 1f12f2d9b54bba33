"""An .npz file with the array names of Keras."""

import os
import pickle
import struct
import zipfile

import numpy as np
import pytest

from scalestudy.data.sources.arrays import NpzArray
from scalestudy.util.errors import UserError

DRAW = np.random.default_rng(0)


def images(count, dtype=np.uint8, shape=(5, 7)):
    return DRAW.integers(0, 256, (count, *shape)).astype(dtype)


@pytest.fixture
def npz(tmp_path):
    def npz(**arrays):
        np.savez_compressed(tmp_path / "set.npz", **arrays)
        return tmp_path / "set.npz"

    return npz


def test_classes_with_a_test_set(npz, ready):
    x, y = images(9), np.arange(9) % 3
    prepared = ready(
        npz(x_train=x[:6], y_train=y[:6], x_test=x[6:], y_test=y[6:, None])
    )
    assert prepared.kind == "classes"
    assert prepared.given == {"train": (0, 6), "test": (6, 9)}
    assert (prepared.inputs[:, :, :, 0] == x).all()
    assert prepared.targets.tolist() == y.tolist()
    assert prepared.class_names == ("0", "1", "2")
    assert prepared.scale == 1 / 255


def test_a_validation_set_comes_after_the_training_set(npz, ready):
    y = np.array([0, 1, 0])
    prepared = ready(npz(x_val=images(3), y_val=y, x_train=images(3), y_train=y))
    assert prepared.given == {"train": (0, 3), "validation": (3, 6)}


@pytest.mark.parametrize("trailing", [(), (1,)])
def test_targets_of_the_images_shape_are_masks(npz, ready, trailing):
    masks = (images(4) > 99).astype(np.uint8) * 255
    prepared = ready(
        npz(
            x_train=images(4, shape=(5, 7, 3)),
            y_train=masks.reshape(4, 5, 7, *trailing),
        )
    )
    assert prepared.kind == "masks"
    assert prepared.input_shape == (5, 7, 3)
    assert (prepared.targets == masks // 255).all()


@pytest.mark.parametrize(
    ("dtype", "stored", "scale"),
    [
        (np.uint16, np.uint16, 1 / 65535),
        (np.float64, np.float32, 1.0),
    ],
)
def test_each_type_keeps_its_depth(npz, ready, dtype, stored, scale):
    x = images(4, dtype)
    prepared = ready(npz(x_train=x, y_train=[0, 1, 0, 1]))
    assert (prepared.inputs.dtype, prepared.scale) == (stored, scale)
    assert (prepared.inputs[..., 0] == x).all()


def test_an_image_size_pads_masks_with_what_is_ignored(npz, ready, tmp_path):
    path = npz(x_train=images(2), y_train=np.ones((2, 5, 7), int) * [[[0]], [[1]]])
    prepared = ready(path, image_size=(7, 7))
    assert prepared.ignore == 255
    assert (prepared.targets[:, 0] == 255).all()


TWO = {"x_train": images(2), "y_train": [0, 1]}


@pytest.mark.parametrize(
    ("arrays", "named"),
    [
        ({"x_test": images(2), "y_test": [0, 1]}, "x_test"),
        ({"x_train": images(2)}, "x_train"),
        ({"x_train": images(3), "y_train": [0, 1]}, "y_train of shape [2]"),
        (
            {"x_train": images(3), "y_train": np.eye(3, dtype=int)},
            "y_train of shape [3, 3]",
        ),
        (
            {"x_train": images(2), "y_train": [0.0, 1.0]},
            "y_train of shape [2], float64",
        ),
        (
            {"x_train": images(2, shape=(3, 9, 9)), "y_train": [0, 1]},
            "x_train of shape [2, 3, 9, 9]",
        ),
        ({"x_train": images(3), "y_train": [0, 1, 3]}, "3 in y_train"),
        ({"x_train": images(3), "y_train": [0, 0, 0]}, "'0'"),
        ({"x_train": images(3), "y_train": [0, 1, -1]}, "-1 in y_train"),
        ({"x_train": np.full((2, 4, 4), np.nan), "y_train": [0, 1]}, "x_train[0]"),
        ({"x_train": np.full((2, 4, 4), 1e39), "y_train": [0, 1]}, "1e+39"),
        ({"x_train": images(2) * 1j, "y_train": [0, 1]}, "complex128"),
        (
            {"x_train": images(0), "y_train": np.zeros(0, int)},
            "x_train of shape [0, 5, 7]",
        ),
        (
            {"x_train": images(2), "y_train": np.array([0, 2**64 - 1], np.uint64)},
            f"0..{2**64 - 1}",
        ),
        ({**TWO, "x_test": images(2), "y_test": [1, 2]}, "2 in y_test"),
        (
            {**TWO, "x_test": images(2) > 9, "y_test": [0, 1]},
            "x_test of shape [2, 5, 7], bool",
        ),
        (
            {**TWO, "x_test": images(2, float), "y_test": [0, 1]},
            "x_test of shape [2, 5, 7], float64",
        ),
        (
            {**TWO, "x_test": images(2, shape=(4, 4)), "y_test": [0, 1]},
            "x_test of shape [2, 4, 4]",
        ),
        (
            {**TWO, "x_test": images(2), "y_test": images(2)},
            "y_test of shape [2, 5, 7]",
        ),
        (
            {"x_train": images(2), "y_train": np.full((2, 5, 7), 2**64 - 1, np.uint64)},
            "y_train[0]",
        ),
        ({"x_train": images(2), "y_train": np.full((2, 5, 7), 9)}, "y_train[0]"),
        (
            {"x_train": images(2, int), "y_train": [0, 1]},
            "x_train of shape [2, 5, 7], int64",
        ),
        ({"x_train": images(1), "y_train": [0]}, "1 in"),
        ({"x_train": images(2), "y_train": np.empty(2, object)}, "y_train"),
    ],
)
def test_other_arrays_are_refused(npz, refusal, arrays, named):
    path = npz(**arrays)
    received = refusal(path).received
    assert named in received and str(path) in received


def test_other_members_are_left_out(npz, ready):
    prepared = ready(npz(x_train=images(3), y_train=[0, 1, 0], weights=np.ones(3)))
    assert [(group.count, group.names) for group in prepared.left_out] == [
        (1, ("weights",))
    ]


Y = np.array([0, 1, 0, 1])
X = np.arange(4 * 5 * 7, dtype=np.uint8).reshape(4, 5, 7)


@pytest.fixture
def archive(tmp_path):
    """Write an .npz file with raw members."""

    def archive(members, method=zipfile.ZIP_STORED):
        with zipfile.ZipFile(tmp_path / "set.npz", "w", method) as file:
            for name, data in members.items():
                file.writestr(name, data)
        return tmp_path / "set.npz"

    return archive


def npy(shape, descr="|u1", data=b""):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}"
    return claimed(header) + data


def claimed(header):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def refusal_of(path):
    with pytest.raises(UserError) as refused:
        NpzArray(path, "x_train")
    assert str(path) in refused.value.received
    return refused.value.received


@pytest.mark.parametrize("shape", [(10**12, 1024), (10**30,), (4, 5, 8), (-4, -35)])
def test_a_header_that_claims_another_size_is_refused(archive, shape):
    path = archive({"x_train.npy": npy(shape, data=X.tobytes())})
    with pytest.raises(UserError, match="x_train"):
        NpzArray(path, "x_train").values()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY\x09\x00",
        b"no array",
        claimed("(" * 4000),
        claimed("__import__('os')"),
    ],
)
def test_a_member_that_is_no_array_is_refused(archive, data):
    assert "x_train: " in refusal_of(archive({"x_train.npy": data}))


def test_a_pickle_is_never_loaded(archive, tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    body = pickle.dumps(Harm())
    assert "Python objects" in refusal_of(
        archive({"x_train.npy": npy((1,), "|O", body)})
    )
    refusal_of(archive({"x_train.npy": body}))
    assert not (tmp_path / "harm").exists()


def test_names_that_climb_out_of_the_archive_are_not_extracted(
    archive, ready, tmp_path
):
    members = {
        "x_train.npy": npy((4, 5, 7), data=X.tobytes()),
        "y_train.npy": npy((4,), data=b"\0\1\0\1"),
    }
    path = archive(
        {"../../x_train.npy": b"harm", "/tmp/y_train.npy": b"harm", **members}
    )
    prepared = ready(path)
    assert (prepared.inputs[..., 0] == X).all()
    assert prepared.left_out[0].names == ("../../x_train", "/tmp/y_train")


def test_a_member_that_ends_early_or_is_changed_is_named(archive):
    path = archive({"x_train.npy": npy((4, 5, 7), data=X.tobytes())})
    raw = path.read_bytes()
    path.write_bytes(raw.replace(X.tobytes()[:20], bytes(20)))
    with pytest.raises(UserError, match="x_train: Bad CRC-32"):
        NpzArray(path, "x_train").values()
