"""Keras's data sets, read from the same files as Keras; the tests use small files of the same layout."""

import gzip
import hashlib
import io
import tarfile

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.sources.public import sets as module
from scalestudy.data.sources.public.download import RemoteFile
from scalestudy.data.store.prepare import prepare
from scalestudy.util.errors import UserError

DRAW = np.random.default_rng(0)


def served(site, url: str, content: bytes) -> RemoteFile:
    """Serve a file from the local server, with its correct checksum."""
    site.files["/" + url.removeprefix("https://")] = content
    return RemoteFile(url, f"sha256:{hashlib.sha256(content).hexdigest()}")


@pytest.fixture
def publish(site, monkeypatch):
    """Replace the files of a set."""

    def publish(name, contents):
        known = module.SETS[f"keras:{name}"]
        pairs = zip(known.files, contents, strict=True)
        files = tuple(served(site, file.url, content) for file, content in pairs)
        monkeypatch.setitem(module.SETS, f"keras:{name}", known._replace(files=files))

    return publish


def python_2_pickle(table: dict) -> bytes:
    """Pickle as Python 2 wrote CIFAR's files: keys, texts and array bytes are plain strings."""

    def text(value: bytes) -> bytes:
        return b"T" + len(value).to_bytes(4, "little") + value

    def number(value: int) -> bytes:
        return b"J" + value.to_bytes(4, "little", signed=True)

    def put(value) -> bytes:
        if isinstance(value, bytes):
            return text(value)
        if isinstance(value, list):
            return b"](" + b"".join(map(put, value)) + b"e"
        if isinstance(value, int):
            return number(value)
        new = (
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n("
            + number(0)
            + b"t"
            + text(b"b")
            + b"tR"
        )
        kind = b"cnumpy\ndtype\n(" + text(b"u1") + number(0) + number(1) + b"tR"
        kind += b"(" + number(3) + text(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
        shape = b"(" + b"".join(map(number, value.shape)) + b"t"
        return new + b"(" + number(1) + shape + kind + b"I00\n" + text(value.tobytes()) + b"tb"

    items = b"".join(text(key) + put(value) for key, value in table.items())
    return b"\x80\x02}(" + items + b"u."


def packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def planes(count: int) -> np.ndarray:
    return DRAW.integers(0, 256, (count, 3072), dtype=np.uint8)


def ready(name, tmp_path, **keys):
    return prepare(data_of(name, cache=tmp_path / "cache", **keys))


def test_mnist_is_its_npz_file(publish, tmp_path, site):
    x, y = DRAW.integers(0, 256, (12, 28, 28), dtype=np.uint8), np.arange(12, dtype=np.uint8) % 10
    buffer = io.BytesIO()
    np.savez(buffer, x_train=x[:10], y_train=y[:10], x_test=x[10:], y_test=y[10:])
    publish("mnist", [buffer.getvalue()])
    made = ready("keras:mnist", tmp_path)
    assert made.given == {"train": (0, 10), "test": (10, 12)}
    np.testing.assert_array_equal(made.inputs[:, :, :, 0], x)
    np.testing.assert_array_equal(made.targets, y)
    assert site.asked == ["/storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"]


def test_fashion_mnist_is_four_files_with_the_names_of_its_classes(publish, tmp_path):
    def idx(array):
        shape = b"".join(size.to_bytes(4, "big") for size in array.shape)
        return gzip.compress(bytes([0, 0, 8, array.ndim]) + shape + array.tobytes())

    x, y = DRAW.integers(0, 256, (14, 28, 28), dtype=np.uint8), np.arange(14, dtype=np.uint8) % 10
    publish("fashion_mnist", [idx(x[:11]), idx(y[:11]), idx(x[11:]), idx(y[11:])])
    made = ready("keras:fashion_mnist", tmp_path)
    assert made.given == {"train": (0, 11), "test": (11, 14)}
    np.testing.assert_array_equal(made.inputs[:, :, :, 0], x)
    np.testing.assert_array_equal(made.targets, y)
    assert made.class_names[9] == "Ankle boot"


def test_cifar10_is_six_pickles_of_planes(publish, tmp_path):
    batches = [(planes(4), [(2 * i + j) % 10 for j in range(4)]) for i in range(6)]
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    files = {
        f"cifar-10-batches-py/{name}": python_2_pickle({b"data": data, b"labels": labels})
        for name, (data, labels) in zip(names, batches, strict=True)
    }
    known = [f"class {i}".encode() for i in range(10)]
    files["cifar-10-batches-py/batches.meta"] = python_2_pickle({b"label_names": known})
    batches[4][1][3] = 9
    files["cifar-10-batches-py/data_batch_5"] = python_2_pickle(
        {b"data": batches[4][0], b"labels": [7, 8, 8, 9]}
    )
    publish("cifar10", [packed(files)])
    made = ready("keras:cifar10", tmp_path)
    assert made.given == {"train": (0, 20), "test": (20, 24)}
    assert made.input_shape == (32, 32, 3)
    for row in (0, 23):
        image = batches[row // 4][0][row % 4].reshape(3, 32, 32)
        np.testing.assert_array_equal(made.inputs[row], np.moveaxis(image, 0, -1))
    assert made.targets[16:20].tolist() == [7, 8, 8, 9]
    assert made.class_names == tuple(name.decode() for name in known)


def test_cifar100_has_fine_labels(publish, tmp_path):
    train, test = planes(100), planes(3)
    files = {
        "train": {b"data": train, b"fine_labels": list(range(100)), b"coarse_labels": [0] * 100},
        "test": {b"data": test, b"fine_labels": [99, 0, 5], b"coarse_labels": [0] * 3},
        "meta": {b"fine_label_names": [f"f{i}".encode() for i in range(100)]},
    }
    content = {f"cifar-100-python/{name}": python_2_pickle(table) for name, table in files.items()}
    publish("cifar100", [packed(content)])
    made = ready("keras:cifar100", tmp_path)
    assert made.classes == 100
    assert made.targets[100:].tolist() == [99, 0, 5]
    assert made.class_names[5] == "f5"


@pytest.mark.parametrize("source", ["keras", "keras:", "keras:imdb"])
def test_other_names_are_refused_with_those_that_there_are(source, tmp_path):
    with pytest.raises(UserError, match="keras:mnist, keras:fashion_mnist, keras:cifar10, keras:cifar100"):
        ready(source, tmp_path)
