"""Data sources: corrupt images of each format, arrays with false headers, special files."""

import io
import os
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from hostile.case import Case

FORMATS = {
    "png": "PNG",
    "jpg": "JPEG",
    "tif": "TIFF",
    "bmp": "BMP",
    "gif": "GIF",
    "webp": "WEBP",
}


def cases(random: random.Random) -> Iterator[Case]:
    for suffix in FORMATS:
        good = image(suffix)
        for word, content in _damages(suffix, good, random).items():
            # An image with a flipped byte may still be valid.
            yield Case(
                "source: image",
                f"{suffix} {word}",
                partial(_images, suffix, content),
                must=word in MUST,
            )
    for word, content in arrays().items():
        yield Case("source: npz", word, partial(_npz, content), must=True)
    whole = _saved(x_train=np.zeros((6, 8, 8), np.uint8), y_train=np.arange(6) % 2)
    for number in range(15):
        data = bytearray(whole)
        for _ in range(3):
            data[random.randrange(len(data))] = random.randrange(256)
        yield Case("source: npz", f"flipped {number}", partial(_npz, bytes(data)))
    for word, build in PLACES.items():
        ordinary = word.startswith("unreadable")
        yield Case(
            "source: place", word, build, must=word not in FINE, ordinary=ordinary
        )


SIX = (
    b"\x93NUMPY\x01\x00\x3c\x00{'descr': '|u1', 'fortran_order': False, 'shape': (6,), }   \n"
    + b"\0" * 6
)
MUST = ("truncated", "empty", "zeroes", "text", "head only")


def image(suffix: str, size: int = 16) -> bytes:
    stream = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (size, size, 3), np.uint8)
    Image.fromarray(pixels).save(stream, FORMATS[suffix])
    return stream.getvalue()


def _damages(suffix: str, good: bytes, random: random.Random) -> dict[str, bytes]:
    flipped = bytearray(good)
    for _ in range(8):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    found = {
        "truncated": good[: len(good) // 3],
        "cut at the end": good[:-5],
        "empty": b"",
        "zeroes": b"\0" * 500,
        "text": b"this is no picture\n",
        "head only": good[:12],
        "flipped": bytes(flipped),
        "another's head": good[:8] + image("bmp" if suffix != "bmp" else "png")[8:],
    }
    if suffix == "png":
        found["terabytes"] = _png(10**6, 10**6)
        found["no size"] = _png(0, 0)
    if suffix == "bmp":
        found["terabytes"] = good[:18] + struct.pack("<ii", 2**30, 2**30) + good[26:]
    return found


def _png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0"))
        + chunk(b"IEND", b"")
    )


def arrays() -> dict[str, bytes]:
    labels = np.arange(6) % 2
    whole = _saved(x_train=np.zeros((6, 8, 8), np.uint8), y_train=labels)
    return {
        "empty": b"",
        "text": b"no archive",
        "truncated": whole[: len(whole) // 2],
        "no arrays": _archive({"readme.txt": b"hello"}),
        "object array": _saved(x_train=np.array([{}, []], object), y_train=labels[:2]),
        "texts": _saved(x_train=np.array(["a", "b"]), y_train=labels[:2]),
        "unequal": _saved(x_train=np.zeros((6, 8, 8), np.uint8), y_train=labels[:3]),
        "one array": _saved(x_train=np.zeros((6, 8, 8), np.uint8)),
        "no samples": _saved(x_train=np.zeros((0, 8, 8), np.uint8), y_train=labels[:0]),
        "one dimension": _saved(x_train=np.zeros(6, np.uint8), y_train=labels),
        "complex": _saved(x_train=np.zeros((6, 8, 8), complex), y_train=labels),
        "terabytes": _archive(
            {
                "x_train.npy": _header("(1000000, 10000, 10000)"),
                "y_train.npy": _header("(1000000,)"),
            }
        ),
        "negative": _archive(
            {"x_train.npy": _header("(-1, 8, 8)"), "y_train.npy": _header("(6,)")}
        ),
        "overflow": _archive(
            {
                "x_train.npy": _header("(9223372036854775807, 2, 2)"),
                "y_train.npy": _header("(6,)"),
            }
        ),
        "no header": _archive({"x_train.npy": b"\x93NUMPY", "y_train.npy": b""}),
        "evil header": _archive(
            {"x_train.npy": _header("__import__('os')"), "y_train.npy": _header("(6,)")}
        ),
        "deep header": _archive(
            {
                "x_train.npy": _header("(" * 500 + ")" * 500),
                "y_train.npy": _header("(6,)"),
            }
        ),
        "bomb": _archive(
            {
                "x_train.npy": _header("(6, 4, 4)") + b"\0" * 10**7,
                "y_train.npy": _header("(6,)") + b"\0" * 6,
            }
        ),
        "negative labels": _saved(
            x_train=np.zeros((6, 8, 8), np.uint8), y_train=-labels
        ),
        "fractional labels": _saved(
            x_train=np.zeros((6, 8, 8), np.uint8), y_train=labels + 0.5
        ),
        "nan": _saved(x_train=np.full((6, 8, 8), np.nan), y_train=labels),
    }


def _saved(**given: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **given)  # type: ignore[arg-type]
    return stream.getvalue()


def _archive(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _header(shape: str) -> bytes:
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def _prepare(source: str) -> list[str]:
    return ["data", "prepare", source, "--cache", "cache"]


def _npz(content: bytes, folder: Path) -> list[str]:
    (folder / "set.npz").write_bytes(content)
    return _prepare("set.npz")


def _images(suffix: str, bad: bytes, folder: Path) -> list[str]:
    """Create a folder of two classes in which one of six images is bad."""
    classes(folder, suffix)
    (folder / "set" / "b" / f"2.{suffix}").write_bytes(bad)
    return _prepare("set")


def classes(folder: Path, suffix: str = "png") -> None:
    for name in "ab":
        (folder / "set" / name).mkdir(parents=True)
        for number in range(3):
            (folder / "set" / name / f"{number}.{suffix}").write_bytes(image(suffix))


def _spoilt(spoil: Callable[[Path], object], folder: Path) -> list[str]:
    classes(folder)
    spoil(folder / "set")
    return _prepare("set")


def _replaced(make: Callable[[Path], object], set_: Path) -> None:
    (set_ / "b" / "2.png").unlink()
    make(set_ / "b" / "2.png")


def _surrogate(set_: Path) -> None:
    os.rename(set_ / "b" / "2.png", os.fsencode(set_ / "b") + b"/\xff.png")


def _masks(folder: Path) -> list[str]:
    for name in ("images", "masks"):
        (folder / "set" / name).mkdir(parents=True)
        for number in range(3):
            (folder / "set" / name / f"{number}.png").write_bytes(
                image("png", 16 if name == "images" else 8)
            )
    return _prepare("set")


# Entries that are no image files are skipped and listed.
FINE = (
    "surrogate in a name",
    "nested loop",
    "image is a folder",
    "image is a pipe",
    "image is a loop",
    "image leads nowhere",
)
PLACES: dict[str, Callable[[Path], list[str]]] = {
    "missing": lambda folder: _prepare("none"),
    "nul": lambda folder: _prepare("a\0b"),
    "long": lambda folder: _prepare("n" * 300),
    "surrogate": lambda folder: _prepare("\udcff"),
    "device": lambda folder: _prepare("/dev/zero"),
    "variable": lambda folder: _prepare("$NO_SUCH_VARIABLE_HERE/x"),
    "empty folder": lambda folder: ((folder / "set").mkdir(), _prepare("set"))[1],
    "pipe": lambda folder: (os.mkfifo(folder / "a.npz"), _prepare("a.npz"))[1],
    "loop": lambda folder: ((folder / "a").symlink_to("a"), _prepare("a"))[1],
    "npz folder": lambda folder: ((folder / "a.npz").mkdir(), _prepare("a.npz"))[1],
    "image is a pipe": partial(_spoilt, partial(_replaced, os.mkfifo)),
    "image is a loop": partial(
        _spoilt, partial(_replaced, lambda file: file.symlink_to(file))
    ),
    "image is a folder": partial(_spoilt, partial(_replaced, Path.mkdir)),
    "image leads nowhere": partial(
        _spoilt, partial(_replaced, lambda file: file.symlink_to("none"))
    ),
    "nested loop": partial(_spoilt, lambda set_: (set_ / "b" / "c").symlink_to(set_)),
    "surrogate in a name": partial(_spoilt, _surrogate),
    "unreadable image": partial(_spoilt, lambda set_: (set_ / "b" / "2.png").chmod(0)),
    "unreadable class": partial(_spoilt, lambda set_: (set_ / "b").chmod(0)),
    "unreadable set": partial(_spoilt, lambda set_: set_.chmod(0)),
    "masks of another size": _masks,
}
