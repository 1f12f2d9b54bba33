"""The sets of images that Keras knows by name: "keras:mnist", "keras:cifar10" and so on.

The same files, from the same addresses, as `keras.datasets` takes; those that Keras has here already are
not fetched again. They are read without Keras.
"""

import difflib
import gzip
import io
import pickle
import shutil
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.sources.public.base import SET, About, Public, Recipe
from scalestudy.data.sources.public.download import Downloading, RemoteFile, fetch
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

Array = npt.NDArray[Any]
_GOOGLE = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_TORONTO = "https://www.cs.toronto.edu/~kriz/"

# Checksums as in keras.datasets (Keras 3.15); those of Fashion-MNIST, of which Keras checks none, and all
# sizes as TensorFlow Datasets 4.9.10 and the publishers state them.
MNIST = RemoteFile(
    f"{_GOOGLE}mnist.npz",
    "sha256:731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    11_490_434,
    ("mnist.npz",),
)
CIFAR10 = RemoteFile(
    f"{_TORONTO}cifar-10-python.tar.gz",
    "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    170_498_071,
    ("cifar-10-batches-py-target_archive", "cifar-10-batches-py.tar.gz"),
)
CIFAR100 = RemoteFile(
    f"{_TORONTO}cifar-100-python.tar.gz",
    "sha256:85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    169_001_437,
    ("cifar-100-python-target_archive", "cifar-100-python.tar.gz"),
)
FASHION_MNIST = tuple(
    RemoteFile(f"{_GOOGLE}{name}.gz", f"sha256:{checksum}", size, (f"fashion-mnist/{name}.gz",))
    for name, checksum, size in (
        (
            "train-images-idx3-ubyte",
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            26_421_880,
        ),
        (
            "train-labels-idx1-ubyte",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            29_515,
        ),
        (
            "t10k-images-idx3-ubyte",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            4_422_102,
        ),
        ("t10k-labels-idx1-ubyte", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5_148),
    )
)
FASHION_NAMES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
"""As Zalando names them by index."""


def keras(argument: str | None, data: DataSettings) -> Public:
    """The source "keras:NAME"."""
    if argument not in _SETS:
        close = difflib.get_close_matches(argument or "", _SETS, n=1)
        raise UserError(
            f"one of {', '.join(f'keras:{name}' for name in _SETS)}",
            f"keras:{argument}" if argument else '"keras" without a name',
            f"Did you mean keras:{close[0]}?" if close else "Correct the name; tfds:NAME has other sets.",
        )
    files, make = _SETS[argument]
    version = " ".join(file.hash for file in files)
    return Public(
        Recipe(f"keras-{argument}", f"keras:{argument}", "classes", version, partial(make, files)), data
    )


def _mnist(files: tuple[RemoteFile, ...], folder: Path, store: Path, downloading: Downloading) -> About:
    shutil.copyfile(fetch(files[0], store, downloading), folder / f"{SET}.npz")
    return About()


def _fashion(files: tuple[RemoteFile, ...], folder: Path, store: Path, downloading: Downloading) -> About:
    x_train, y_train, x_test, y_test = (_idx(fetch(file, store, downloading)) for file in files)
    _save(folder, x_train, y_train, x_test, y_test)
    return About(list(FASHION_NAMES))


def _cifar10(files: tuple[RemoteFile, ...], folder: Path, store: Path, downloading: Downloading) -> About:
    root = "cifar-10-batches-py"
    batches = [*(f"{root}/data_batch_{number}" for number in range(1, 6)), f"{root}/test_batch"]
    read = _batches(fetch(files[0], store, downloading), [*batches, f"{root}/batches.meta"])
    pairs = [_pair(read[name], b"labels") for name in batches]
    x, y = (np.concatenate(part) for part in zip(*pairs[:-1], strict=True))
    _save(folder, x, y, *pairs[-1])
    return About(_texts(read[f"{root}/batches.meta"][b"label_names"]))


def _cifar100(files: tuple[RemoteFile, ...], folder: Path, store: Path, downloading: Downloading) -> About:
    names = [f"cifar-100-python/{name}" for name in ("train", "test", "meta")]
    train, test, meta = _batches(fetch(files[0], store, downloading), names).values()
    _save(folder, *_pair(train, b"fine_labels"), *_pair(test, b"fine_labels"))
    return About(_texts(meta[b"fine_label_names"]))


def _save(folder: Path, x_train: Array, y_train: Array, x_test: Array, y_test: Array) -> None:
    np.savez(folder / f"{SET}.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)


def _idx(file: Path) -> Array:
    """An array in the IDX format of MNIST: magic with type (8: bytes) and rank, sizes, bytes in C order."""
    with gzip.open(file) as stream:
        content = stream.read()
    rank = content[3] if content[:3] == b"\0\0\x08" else 0
    shape = np.frombuffer(content, ">u4", rank, 4)
    values = np.frombuffer(content, np.uint8, -1, 4 + 4 * rank)
    if not rank or values.size != int(np.prod(shape, dtype=np.int64)):
        raise _unexpected(file)
    return values.reshape(shape)


def _batches(archive: Path, names: list[str]) -> dict[str, dict[bytes, Any]]:
    """These pickles of an archive, read in memory: nothing is unpacked, and nothing but arrays is made."""
    with tarfile.open(archive) as tar:
        batches = {}
        for name in names:
            stream = tar.extractfile(name)
            if stream is None:
                raise _unexpected(archive)
            batches[name] = _ArraysOnly(io.BytesIO(stream.read()), encoding="bytes").load()
        return batches


def _pair(batch: dict[bytes, Any], labels: bytes) -> tuple[Array, Array]:
    """Images uint8 [N, 32, 32, 3], which are stored as planes, and their classes [N]."""
    images = batch[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.asarray(batch[labels], np.int64)


def _texts(names: list[bytes]) -> list[str]:
    return [name.decode() for name in names]


class _ArraysOnly(pickle.Unpickler):
    """Reads pickles of tables, lists, numbers, texts and NumPy arrays; all else would run code of others."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return getattr(np, name)
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return np.ndarray.__reduce__(np.zeros(0))[0]
        raise pickle.UnpicklingError(f"{module}.{name} is no array")


def _unexpected(file: Path) -> UserError:
    return UserError("the layout that its publisher describes", str(file), "Delete that file and run again.")


_SETS: dict[str, tuple[tuple[RemoteFile, ...], Callable[..., About]]] = {
    "mnist": ((MNIST,), _mnist),
    "fashion_mnist": (FASHION_MNIST, _fashion),
    "cifar10": ((CIFAR10,), _cifar10),
    "cifar100": ((CIFAR100,), _cifar100),
}
