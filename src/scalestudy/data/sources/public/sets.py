"""Public sets by name: "keras:mnist" and others of Keras, and "indents@zenodo".

Keras's sets are the files that `keras.datasets` downloads, from the same URLs, read without Keras.
"""

import gzip
import pickle
import shutil
import tarfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from scalestudy.data.images.decode import read_mask
from scalestudy.data.sources.files import Directory, images_below
from scalestudy.data.sources.layouts.pairs import matched
from scalestudy.data.sources.public.base import SET, About, Public, Recipe
from scalestudy.data.sources.public.download import Downloading, RemoteFile, fetch
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Array
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

FASHION_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
"""Zalando's class names by index."""
Split = tuple[Array, Array]
"""Images and their classes."""


class PublicSet(NamedTuple):
    """A set: its kind, its files, and a function that converts them to `set/` or `set.npz` in a folder."""

    kind: Kind
    files: tuple[RemoteFile, ...]
    make: Callable[..., About]


def keras(argument: str | None, data: DataSettings) -> Public:
    """Return the source "keras:NAME"."""
    names = [name for name in SETS if name.startswith("keras:")]
    if f"keras:{argument}" not in names:
        raise UserError(
            f"one of {', '.join(names)}", f"keras:{argument}" if argument else '"keras" without a name',
            "Correct the name; tfds:NAME has other sets.",
        )  # fmt: skip
    return _public(f"keras:{argument}", data)


def zenodo_indents(argument: str | None, data: DataSettings) -> Public:
    """Return the source "indents@zenodo"."""
    if argument is not None:
        raise UserError('"indents@zenodo" alone', f'"indents@zenodo:{argument}"', 'Write "indents@zenodo".')
    return _public("indents@zenodo", data)


def _public(name: str, data: DataSettings) -> Public:
    kind, files, _ = SETS[name]
    version = " ".join(file.hash for file in files)
    return Public(
        Recipe(name.replace(":", "-").replace("@", "-"), name, kind, version, partial(_make, name)), data
    )


def _make(name: str, folder: Path, store: Path, downloading: Downloading) -> About:
    _, files, make = SETS[name]
    return make(folder, *(fetch(file, store, downloading) for file in files))


def _mnist(folder: Path, archive: Path) -> About:
    shutil.copyfile(archive, folder / f"{SET}.npz")
    return About()


def _fashion(folder: Path, *paths: Path) -> About:
    """Convert IDX files of bytes; headers have 16 bytes for images and 8 for classes."""
    x_train, y_train, x_test, y_test = (
        np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=16 - 8 * (index % 2))
        for index, path in enumerate(paths)
    )
    train, test = (x_train.reshape(-1, 28, 28), y_train), (x_test.reshape(-1, 28, 28), y_test)
    return _saved(folder, train, test, list(FASHION_NAMES))


def _cifar(
    root: str, train: tuple[str, ...], test: str, meta: str, labels: str, folder: Path, archive: Path
) -> About:
    """Convert pickles of channel planes. Unpickling is safe: the archive has the published checksum."""
    with tarfile.open(archive) as tar:

        def read(name: str) -> dict[bytes, Any]:
            stream = tar.extractfile(f"{root}/{name}")
            assert stream is not None
            return dict(pickle.load(stream, encoding="bytes"))

        def arrays(*names: str) -> Split:
            batches = [read(name) for name in names]
            images = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32)
            classes = np.concatenate([batch[f"{labels}s".encode()] for batch in batches])
            return np.ascontiguousarray(images.transpose(0, 2, 3, 1)), classes.astype(np.int64)

        names = [name.decode() for name in read(meta)[f"{labels}_names".encode()]]
        return _saved(folder, arrays(*train), arrays(test), names)


def _saved(folder: Path, train: Split, test: Split, names: list[str]) -> About:
    np.savez(folder / f"{SET}.npz", x_train=train[0], y_train=train[1], x_test=test[0], y_test=test[1])
    return About(names)


def _indents(folder: Path, archive: Path) -> About:
    """Pair images and masks by name; a folder contains masks if its own name has "mask" or "label".

    Smoothed masks are thresholded at half of full scale.
    """
    unpacked = archive.parent / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)  # left by an earlier attempt
    _unpack(archive, unpacked)

    def name_of(path: Path) -> str:
        return "-".join((*path.relative_to(unpacked).parts[:-2], path.stem))

    # The archive itself is named masks: only the last folder counts.
    files = {path: path.parent.name.lower() * (path.parent != unpacked) for path in images_below(unpacked)}
    masks = [path for path, name in files.items() if "mask" in name or "label" in name]
    images = [path for path in files if path not in masks]
    if not images or not masks:
        raise UserError(
            "folders of images and of masks whose files pair by name",
            f"{len(images)} images and {len(masks)} masks in {Directory(unpacked)}",
            "Unpack the archive yourself into images/ and masks/, and name that folder as the source.",
        )
    pairs, _ = matched(images, masks, name_of)
    for name in ("images", "masks"):
        (folder / SET / name).mkdir(parents=True)
    for image, mask in pairs:
        image.rename(folder / SET / "images" / f"{name_of(image)}{image.suffix.lower()}")
        values = read_mask(mask)
        if not set(np.unique(values).tolist()) <= {0, 1}:
            values = np.where(values > 127, 255, 0)
        Image.fromarray(values.astype(np.uint8)).save(folder / SET / "masks" / f"{name_of(image)}.png")
    return About()


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a .tar, compressed or not, into a new folder; refuse members outside it."""
    folder.mkdir()
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # gzip raises OSError without errno for damaged streams.
        expected = "an archive that can be unpacked"
        raise UserError(expected, f"{archive}: {error}", "Delete it and run again.") from error


def _files(base: str, checksums: dict[str, str]) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(f"{base}/{name}", checksum if ":" in checksum else f"sha256:{checksum}")
        for name, checksum in checksums.items()
    )


_GOOGLE = "https://storage.googleapis.com/tensorflow/tf-keras-datasets"
_TORONTO = "https://www.cs.toronto.edu/~kriz"
_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
# Checksums are from keras.datasets (Keras 3.15). Keras has none for Fashion-MNIST; these are from TensorFlow
# Datasets 4.9.10. "indents@zenodo": 1,120 electron micrographs with masks, CC BY 4.0,
# doi:10.5281/zenodo.7639190.
SETS: dict[str, PublicSet] = {
    "keras:mnist": PublicSet(
        "classes",
        _files(_GOOGLE, {
            "mnist.npz": "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
        }),
        _mnist,
    ),
    "keras:fashion_mnist": PublicSet(
        "classes",
        _files(_GOOGLE, {
            "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        }),
        _fashion,
    ),
    "keras:cifar10": PublicSet(
        "classes",
        _files(_TORONTO, {
            "cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        }),
        partial(_cifar, "cifar-10-batches-py", _BATCHES, "test_batch", "batches.meta", "label"),
    ),
    "keras:cifar100": PublicSet(
        "classes",
        _files(_TORONTO, {
            "cifar-100-python.tar.gz": "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        }),
        partial(_cifar, "cifar-100-python", ("train",), "test", "meta", "fine_label"),
    ),
    "indents@zenodo": PublicSet(
        "masks",
        _files("https://zenodo.org/records/7639190/files", {
            "masks.tar.gz": "md5:047f601bdd2b5526fa8c50ea1b4c5f52",
        }),
        _indents,
    ),
}  # fmt: skip
