"""An .npz file with the array names of Keras."""

import numpy as np
import pytest

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


def refusal(ready, path):
    with pytest.raises(UserError) as refused:
        ready(path)
    assert str(path) in refused.value.received
    return str(refused.value)


def test_classes_with_a_test_set(npz, ready):
    x, y = images(9), np.arange(9) % 3
    prepared = ready(npz(x_train=x[:6], y_train=y[:6], x_test=x[6:], y_test=y[6:, None]))
    assert prepared.kind == "classes"
    assert prepared.given == {"train": (0, 6), "test": (6, 9)}
    assert (prepared.inputs[:, :, :, 0] == x).all()
    assert prepared.targets.tolist() == y.tolist()
    assert prepared.class_names == ("0", "1", "2")
    assert prepared.scale == 1 / 255


@pytest.mark.parametrize("suffix", ["val", "valid", "validation"])
def test_a_validation_set_comes_after_the_training_set(npz, ready, suffix):
    y = np.array([0, 1, 0])
    prepared = ready(npz(**{f"x_{suffix}": images(3), f"y_{suffix}": y, "x_train": images(3), "y_train": y}))
    assert prepared.given == {"train": (0, 3), "validation": (3, 6)}


@pytest.mark.parametrize("trailing", [(), (1,)])
def test_targets_of_the_images_shape_are_masks(npz, ready, trailing):
    masks = (images(4) > 99).astype(np.uint8) * 255
    prepared = ready(npz(x_train=images(4, shape=(5, 7, 3)), y_train=masks.reshape(4, 5, 7, *trailing)))
    assert prepared.kind == "masks"
    assert prepared.input_shape == (5, 7, 3)
    assert (prepared.targets == masks // 255).all()


@pytest.mark.parametrize(
    ("dtype", "stored", "scale"),
    [
        (np.uint16, np.uint16, 1 / 65535),
        (np.int64, np.uint8, 1 / 255),
        (np.float64, np.float32, 1.0),
        (np.bool_, np.uint8, 1.0),
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


BAD = {
    "no training set": ({"x_test": images(2), "y_test": [0, 1]}, "x_train and y_train"),
    "targets missing": ({"x_train": images(2)}, "only x_train"),
    "other count": ({"x_train": images(3), "y_train": [0, 1]}, "y_train of shape [2]"),
    "one-hot": ({"x_train": images(3), "y_train": np.eye(3, dtype=int)}, "argmax"),
    "float classes": ({"x_train": images(2), "y_train": [0.0, 1.0]}, "integer classes"),
    "channels first": ({"x_train": images(2, shape=(3, 9, 9)), "y_train": [0, 1]}, "moveaxis"),
    "gap in classes": ({"x_train": images(3), "y_train": [0, 1, 3]}, "0, 1, 3"),
    "one class": ({"x_train": images(3), "y_train": [0, 0, 0]}, "at least 2 classes"),
    "not a number": ({"x_train": np.full((2, 4, 4), np.nan), "y_train": [0, 1]}, "x_train[0]"),
    "beyond float32": ({"x_train": np.full((2, 4, 4), 1e39), "y_train": [0, 1]}, "values up to 1e+39"),
    "complex": ({"x_train": images(2) * 1j, "y_train": [0, 1]}, "real numbers"),
    "no images": ({"x_train": images(0), "y_train": np.zeros(0, int)}, "x_train of shape [0, 5, 7]"),
    "no pixels": ({"x_train": images(2, shape=(0, 7)), "y_train": [0, 1]}, "x_train of shape [2, 0, 7]"),
    "negative class": ({"x_train": images(3), "y_train": [0, 1, -1]}, "-1, 0, 1"),
    "huge class": ({"x_train": images(2), "y_train": np.array([0, 2**64 - 1], np.uint64)}, f"0..{2**64 - 1}"),
    "classes unknown to training": (
        {"x_train": images(2), "y_train": [0, 1], "x_test": images(2), "y_test": [1, 2]},
        "2 in y_test",
    ),
    "flags and numbers": (
        {"x_train": images(2) > 9, "y_train": [0, 1], "x_test": images(2), "y_test": [0, 1]},
        "numbers like x_train's (bool)",
    ),
    "mask beyond 64 bits": (
        {"x_train": images(2), "y_train": np.full((2, 5, 7), 2**64 - 1, np.uint64)},
        "y_train[0]",
    ),
    "negative": ({"x_train": images(2, int) - 300, "y_train": [0, 1]}, "integer images"),
    "odd mask": ({"x_train": images(2), "y_train": np.full((2, 5, 7), 9)}, "y_train[0]"),
    "one sample": ({"x_train": images(1), "y_train": [0]}, "2"),
    "other shape": (
        {"x_train": images(2), "y_train": [0, 1], "x_test": images(2, shape=(4, 4)), "y_test": [0, 1]},
        "x_test of shape [2, 4, 4]",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(npz, ready, name):
    arrays, message = BAD[name]
    assert message in refusal(ready, npz(**arrays))


def test_objects_are_never_unpickled(npz, ready):
    objects = np.empty(2, object)
    assert "never unpickled" in refusal(ready, npz(x_train=images(2), y_train=objects))


def test_a_file_that_is_no_archive(tmp_path, ready):
    (tmp_path / "set.npz").write_text("no")
    assert "not a zip file" in refusal(ready, tmp_path / "set.npz")


def test_other_arrays_are_left_out_and_told(npz, ready):
    prepared = ready(npz(x_train=images(3), y_train=[0, 1, 0], weights=np.ones(3)))
    assert [(group.count, group.names) for group in prepared.left_out] == [(1, ("weights",))]
