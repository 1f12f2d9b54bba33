"""Study files: every key with every bad value, and damaged copies of a good file."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hostile.case import Case

VALUES = {
    "huge": "1" + "0" * 30,
    "digits": "1" + "0" * 5000,
    "hex": "0x" + "f" * 6000,
    "negative": "-1",
    "zero": "0",
    "nan": "nan",
    "inf": "inf",
    "overflow": "1e400",
    "nul": '"a\\u0000b"',
    "long": '"' + "x" * 5000 + '"',
    "name300": '"' + "n" * 300 + '.py"',
    "variable": '"$NO_SUCH_VARIABLE_HERE"',
    "home": '"~no-such-user/x"',
    "dots": '"../../../../../../../../dev/zero"',
    "date": "1979-05-27",
    "dates": "[1979-05-27, 07:32:00]",
    "table": "{ a = 1 }",
    "empty": "[]",
    "nested": "[[[[1]]]]",
    "mixed": '[1, "a", true, 2.5]',
    "deep": "[" * 3000 + "]" * 3000,
    "bool": "true",
    "quoted": '"8"',
}
KEYS = (
    "task",
    "name",
    "data.source",
    "data.validation",
    "data.image_size",
    "data.cache",
    "data.seed",
    "train.epochs",
    "train.batch_size",
    "train.optimizer",
    "train.learning_rate",
    "train.reference_batch",
    "train.warmup_epochs",
    "train.precision",
    "train.xla",
    "train.evaluate_every",
    "sweep.workers",
    "sweep.seed",
    "sweep.strategy",
    "sweep.epochs",
    "launch.on",
    "launch.site",
    "launch.cpus_per_worker",
    "launch.device",
)
GOOD = b"""# A study.
task = "cnn"
name = "study"

[sweep]
strategy = ["native", "horovod"]
workers = [1, 2]
seed = [0, 1]
learning_rate = [1e-3, 1e-2]

[data]
source = "digits"
validation = 0.2

[train]
epochs = 2
batch_size = 32
optimizer = "adam"
"""
WHOLE = {
    "empty": b"",
    "nul": b"\0" * 1000,
    "binary": bytes(range(256)) * 10,
    "utf-16": GOOD.decode().encode("utf-16"),
    "latin-1": 'task = "ü"'.encode("latin-1"),
    "surrogate": b'task = "\xed\xa0\x80"',
    "nested tables": b'task = "cnn"\n[' + b".".join([b"a"] * 3000) + b"]\n",
    "dotted": b'task = "cnn"\n' + b".".join([b"a"] * 3000) + b" = 1\n",
    "inline": b'task = "cnn"\na = ' + b"{ a = " * 2000 + b"1" + b" }" * 2000,
    "many points": b'task = "cnn"\n[sweep]\nseed = [%s]\nepochs = [%s]\nbatch_size = [%s]\n'
    % ((b", ".join(b"%d" % n for n in range(1, 2000)),) * 3),
    "unknown key": b'task = "cnn"\nnonsense = 1\n',
    "unknown section": b'task = "cnn"\n[nonsense]\n',
    "twice": b'task = "cnn"\ntask = "unet"\n',
    "section as value": b'task = "cnn"\ntrain = 5\n',
    "array of tables": b'task = "cnn"\n[[train]]\nepochs = 2\n',
    "only text": b"hello, world\n",
    "json": b'{"task": "cnn"}',
    "cr": b'task = "cnn"\r[sweep]\r',
    "open string": b'task = "cnn',
    "open list": b'task = "cnn"\n[sweep]\nworkers = [1,\n',
    "huge comment": b'task = "cnn"\n#' + b"x" * 2**21,
}


def cases(random: random.Random) -> Iterator[Case]:
    for key in KEYS:
        for word, value in VALUES.items():
            yield Case("study file: value", f"{key} {word}", partial(_with, key, value))
    for word, content in WHOLE.items():
        yield Case("study file: text", word, partial(_file, content), must=True)
    for number in range(60):
        yield Case(
            "study file: damaged", f"{number}", partial(_file, damaged(GOOD, random))
        )
    for word, build in PLACES.items():
        yield Case(
            "study file: place", word, build, must=True, ordinary=word == "unreadable"
        )


def damaged(content: bytes, random: random.Random) -> bytes:
    """Return the content with some bytes deleted, repeated or replaced."""
    data = bytearray(content)
    for _ in range(random.randint(1, 4)):
        at, length = random.randrange(len(data)), random.randint(1, 12)
        part = data[at : at + length]
        new = (
            b"",
            part * 3,
            bytes(random.randrange(256) for _ in part),
            bytes(random.choice(b"[]{}\"'=.,#\n\\ 019-e") for _ in part),
        )
        data[at : at + length] = random.choice(new)
    return bytes(data)


def _with(key: str, value: str, folder: Path) -> list[str]:
    section, _, name = key.rpartition(".")
    top = "" if key == "task" else 'task = "cnn"\n'
    body = f"[{section}]\n{name} = {value}\n" if section else f"{name} = {value}\n"
    return _file((top + body).encode(), folder)


def _file(content: bytes, folder: Path) -> list[str]:
    (folder / "study.toml").write_bytes(content)
    return ["run", "study.toml", "--dry-run"]


def _loop(folder: Path) -> list[str]:
    (folder / "a.toml").symlink_to("b.toml")
    (folder / "b.toml").symlink_to("a.toml")
    return ["run", "a.toml", "--dry-run"]


def _pipe(folder: Path) -> list[str]:
    import os

    os.mkfifo(folder / "study.toml")
    return ["run", "study.toml", "--dry-run"]


def _huge(folder: Path) -> list[str]:
    import os

    (folder / "study.toml").touch()
    os.truncate(folder / "study.toml", 2**42)
    return ["run", "study.toml", "--dry-run"]


def _unreadable(folder: Path) -> list[str]:
    (folder / "study.toml").write_bytes(GOOD)
    (folder / "study.toml").chmod(0)
    return ["run", "study.toml", "--dry-run"]


def _target(name: str, make: object, folder: Path) -> list[str]:
    (folder / "study.toml").write_bytes(GOOD)
    if callable(make):
        make(folder)
    return ["run", "study.toml", "--dry-run", "--out", name]


PLACES = {
    "missing": lambda folder: ["run", "none.toml", "--dry-run"],
    "folder": lambda folder: ["run", ".", "--dry-run"],
    "device": lambda folder: ["run", "/dev/zero", "--dry-run"],
    "nul": lambda folder: ["run", "a\0b.toml", "--dry-run"],
    "long name": lambda folder: ["run", "n" * 300 + ".toml", "--dry-run"],
    "long path": lambda folder: ["run", "n/" * 5000 + "a.toml", "--dry-run"],
    "surrogate": lambda folder: ["run", "\udcff.toml", "--dry-run"],
    "loop": _loop,
    "pipe": _pipe,
    "huge": _huge,
    "unreadable": _unreadable,
    "out is a file": partial(_target, "x", lambda folder: (folder / "x").touch()),
    "out is below a file": partial(
        _target, "x/y", lambda folder: (folder / "x").touch()
    ),
    "out is a loop": partial(
        _target, "x", lambda folder: (folder / "x").symlink_to("x")
    ),
    "out has a long name": partial(_target, "n" * 300, None),
    "out has a nul": partial(_target, "a\0b", None),
    "out is another's": partial(
        _target,
        "x",
        lambda folder: [(folder / "x").mkdir(), (folder / "x" / "thesis").touch()],
    ),
}
