"""Task files: syntax errors, wrong values, errors on import."""

import os
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hostile.case import Case

TEXTS = {
    "syntax": "def model(:\n",
    "indentation": "def f():\nreturn 1\n",
    "tabs": "if 1:\n\tx = 1\n        y = 2\n",
    "nul": 'data = "a"\0\n',
    "binary": "\udcff\udcfe\udcc0",
    "kind": 'kind = "boxes"\n',
    "kind list": 'kind = ["masks"]\n',
    "train text": 'train = "fast"\n',
    "train unknown": 'train = {"nonsense": 1}\n',
    "train study's": 'train = {"xla": True}\n',
    "train keys": "train = {1: 2}\n",
    "train nan": 'train = {"learning_rate": float("nan")}\ndata = "digits"\n',
    "train inf": 'train = {"learning_rate": 1e999}\n',
    "train huge": 'train = {"epochs": 10000000000000000000000000000000}\n',
    "train digits": f'train = {{"epochs": {"9" * 6000}}}\n',
    "train negative": 'train = {"epochs": -1}\n',
    "train set": 'train = {"epochs": {1, 2}}\n',
    "train bytes": 'train = {"optimizer": b"adam"}\n',
    "train complex": 'train = {"epochs": 1 + 2j}\n',
    "train ellipsis": 'train = {"epochs": ...}\n',
    "train nested": f'train = {{"epochs": {"[" * 90}{"]" * 90}}}\n',
    "deep": f"data = {'(' * 3000}{')' * 3000}\n",
    "deep sum": "data = " + "+".join(["1"] * 20_000) + "\n",
    "coding": "# -*- coding: nonsense -*-\ndata = 1\n",
    "no data": "loss = 1\n",
    "data number": "data = 5\n",
    "data missing": 'data = "no such folder"\nkind = "masks"\n',
    "data nul": 'data = "a\\0b"\nkind = "masks"\n',
    "data long": f'data = "{"x" * 5000}"\nkind = "masks"\n',
    "data surrogate": 'data = "\\ud800"\nkind = "masks"\n',
    "data of another kind": 'data = "digits"\nkind = "masks"\n',
}
FINE = ("train nan", "no data", "data number", "data missing", "deep sum")
IMPORTED = {
    "raises": 'import os\ndata = os.environ["NO_SUCH_VARIABLE_HERE"]\n',
    "exits": 'import sys\ndata = sys.exit("no")\n',
    "prints no JSON": 'print("{")\ndata = str(1 / 0)\n',
    "kills itself": "import os\ndata = os.kill(os.getpid(), 9)\n",
}


def cases(random: random.Random) -> Iterator[Case]:
    del random
    for word, text in TEXTS.items():
        yield Case(
            "task file: text",
            word,
            partial(_task, text, ["run", "study.toml", "--dry-run"]),
        )
        yield Case(
            "task file: text",
            f"{word}, prepared",
            partial(_task, text, ["data", "prepare", "study.toml"]),
            must=word != "deep sum",
            slow=word in ("deep", "deep sum", "no data", "data number", "train nan"),
        )
    for word, text in IMPORTED.items():
        build = partial(_task, text, ["data", "prepare", "study.toml"])
        yield Case("task file: import", word, build, must=True, slow=True)
    yield Case("task file: text", "a folder", _folder, must=True)
    yield Case("task file: text", "a pipe", _pipe, must=True)
    yield Case("task file: text", "a loop", _loop, must=True)


def _study(folder: Path) -> None:
    (folder / "study.toml").write_text(
        'task = "task.py"\n[data]\ncache = "cache"\n[sweep]\nworkers = 1\n'
    )


def _task(text: str, arguments: list[str], folder: Path) -> list[str]:
    _study(folder)
    (folder / "task.py").write_bytes(text.encode(errors="surrogateescape"))
    return arguments


def _folder(folder: Path) -> list[str]:
    _study(folder)
    (folder / "task.py").mkdir()
    return ["run", "study.toml", "--dry-run"]


def _pipe(folder: Path) -> list[str]:
    _study(folder)
    os.mkfifo(folder / "task.py")
    return ["run", "study.toml", "--dry-run"]


def _loop(folder: Path) -> list[str]:
    _study(folder)
    (folder / "task.py").symlink_to("task.py")
    return ["run", "study.toml", "--dry-run"]
