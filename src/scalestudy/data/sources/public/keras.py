"""The sets of images that Keras knows by name: "keras:mnist", "keras:cifar10" and so on.

The same files, from the same addresses, as `keras.datasets` takes; read without Keras.
"""

import gzip
import pickle
import shutil
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scalestudy.data.sources.public.base import SET, About, Public, Recipe
from scalestudy.data.sources.public.download import Downloading, RemoteFile, fetch
from scalestudy.data.types import Array
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

_GOOGLE = "https://storage.googleapis.com/tensorflow/tf-keras-datasets"
_TORONTO = "https://www.cs.toronto.edu/~kriz"

# Checksums as in keras.datasets (Keras 3.15); those of Fashion-MNIST, of which Keras checks none, as
# TensorFlow Datasets 4.9.10 states them.
MNIST = RemoteFile(
    f"{_GOOGLE}/mnist.npz", "sha256:731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"
)
CIFAR10 = RemoteFile(
    f"{_TORONTO}/cifar-10-python.tar.gz",
    "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)
CIFAR100 = RemoteFile(
    f"{_TORONTO}/cifar-100-python.tar.gz",
    "sha256:85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
)
FASHION_MNIST = tuple(
    RemoteFile(f"{_GOOGLE}/{name}-ubyte.gz", f"sha256:{checksum}")
    for name, checksum in (
        ("train-images-idx3", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        ("train-labels-idx1", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ("t10k-images-idx3", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        ("t10k-labels-idx1", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    )
)
FASHION_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
"""As Zalando names them by index."""
Arrays = tuple[Array, Array]
"""Images and their classes."""


def keras(argument: str | None, data: DataSettings) -> Public:
    """The source "keras:NAME"."""
    if argument not in _SETS:
        raise UserError(
            f"one of {', '.join(f'keras:{name}' for name in _SETS)}",
            f"keras:{argument}" if argument else '"keras" without a name',
            "Correct the name; tfds:NAME has other sets.",
        )
    files, read = _SETS[argument]
    version, make = " ".join(file.hash for file in files), partial(_make, files, read)
    return Public(Recipe(f"keras-{argument}", f"keras:{argument}", "classes", version, make), data)


Read = Callable[..., tuple[Arrays, Arrays, list[str]]]
"""From the files to the training set, the test set, and the names of the classes."""


def _make(
    files: tuple[RemoteFile, ...], read: Read | None, folder: Path, store: Path, downloading: Downloading
) -> About:
    paths = [fetch(file, store, downloading) for file in files]
    if read is None:
        shutil.copyfile(paths[0], folder / f"{SET}.npz")
        return About()
    (x_train, y_train), (x_test, y_test), names = read(*paths)
    np.savez(folder / f"{SET}.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    return About(names)


def _fashion(*paths: Path) -> tuple[Arrays, Arrays, list[str]]:
    """IDX files of bytes, whose headers are 16 bytes of images and 8 of classes."""
    x_train, y_train, x_test, y_test = (
        np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=16 - 8 * (index % 2))
        for index, path in enumerate(paths)
    )
    train, test = (x_train.reshape(-1, 28, 28), y_train), (x_test.reshape(-1, 28, 28), y_test)
    return train, test, list(FASHION_NAMES)


def _cifar(root: str, train: tuple[str, ...], test: str, meta: str, labels: str, archive: Path) -> Any:
    """Pickles of planes. Their archive is the published one, by its checksum: nothing else is unpickled."""
    with tarfile.open(archive) as tar:

        def read(name: str) -> dict[bytes, Any]:
            stream = tar.extractfile(f"{root}/{name}")
            assert stream is not None
            return dict(pickle.load(stream, encoding="bytes"))

        def arrays(*names: str) -> Arrays:
            batches = [read(name) for name in names]
            images = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32)
            classes = np.concatenate([batch[f"{labels}s".encode()] for batch in batches])
            return np.ascontiguousarray(images.transpose(0, 2, 3, 1)), classes.astype(np.int64)

        names = [name.decode() for name in read(meta)[f"{labels}_names".encode()]]
        return arrays(*train), arrays(test), names


_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_CIFAR10 = partial(_cifar, "cifar-10-batches-py", _BATCHES, "test_batch", "batches.meta", "label")
_CIFAR100 = partial(_cifar, "cifar-100-python", ("train",), "test", "meta", "fine_label")
_SETS: dict[str, tuple[tuple[RemoteFile, ...], Read | None]] = {
    "mnist": ((MNIST,), None),
    "fashion_mnist": (FASHION_MNIST, _fashion),
    "cifar10": ((CIFAR10,), _CIFAR10),
    "cifar100": ((CIFAR100,), _CIFAR100),
}
