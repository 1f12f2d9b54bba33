"""Any set of TensorFlow Datasets: "tfds:NAME", "tfds:NAME/CONFIG:VERSION", or "tfds:/FOLDER/NAME/VERSION".

TFDS itself runs in a process of its own (`tfds_export`), once: what it writes is read like any folder or
.npz file, by whoever has no TFDS.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from scalestudy import modules
from scalestudy.data.kinds import Kind
from scalestudy.data.left_out import LeftOut
from scalestudy.data.public.fetch import Downloading
from scalestudy.data.public.source import About, Public, Recipe, stored_about
from scalestudy.data.public.tfds_features import Asked, asked_of
from scalestudy.data.source import digest, files_digest
from scalestudy.errors import UserError
from scalestudy.study.settings import DataSettings

_VERSION = 1
"""Raised with every change of how a set of TFDS is written out."""
_QUIETLY = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
"""TensorFlow computes nothing there: it leaves the memory of GPUs to others."""


def tfds(argument: str | None, data: DataSettings) -> Public:
    """The source "tfds:...": what its set holds is looked up, and nothing fetched or prepared."""
    asked = asked_of(argument)
    content = "" if asked.folder is None else files_digest(asked.folder, sorted(asked.folder.glob("*.*")))
    label = f"tfds-{re.sub(r'[^A-Za-z0-9._-]+', '-', asked.shown)[-40:]}-{digest(asked.text, content)[:8]}"
    known = stored_about(data, label)
    # Of a prepared set its own files tell; of another only TFDS, which takes some seconds, once.
    kind = known.facts["kind"] if known else asked.kind() or ask("kind", asked)["kind"]
    found: Kind = "masks" if kind == "masks" else "classes"
    make = partial(_export, asked, found)
    return Public(Recipe(label, asked.text, found, f"{_VERSION} {content}", make), data)


def _export(asked: Asked, kind: Kind, folder: Path, store: Path, downloading: Downloading) -> About:
    with downloading(asked.text, "samples") as on_samples:
        told = ask("export", asked, str(folder), on_samples=on_samples)
    left_out = tuple(LeftOut(reason, 1, (name,)) for name, reason in told["left_out"])
    return About(told["class_names"], left_out, {"kind": kind, "set": told["set"]})


def ask(what: str, asked: Asked, *more: str, on_samples: Any = None) -> dict[str, Any]:
    """The answer of a process with TFDS; what it writes meanwhile goes to a file that is named if it fails.

    Raises:
        UserError: TFDS is missing, does not know the set, or cannot have it.
    """
    command = [sys.executable, "-P", "-m", modules.TFDS, what, asked.text, *more]
    answer: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **_QUIETLY}
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    told = _told(line)
                    if "done" in told and on_samples is not None:
                        on_samples(told["done"], told["total"])
                    answer = told or answer
            except BaseException:
                process.kill()
                raise
        errors.seek(0)
        last = [line.strip() for line in errors.read().splitlines() if line.strip()][-3:]
    if "expected" in answer:
        raise UserError(answer["expected"], answer["received"], answer["action"])
    if process.returncode or not ("kind" in answer or "set" in answer):
        raise UserError(
            f"TensorFlow Datasets to read {asked.text}",
            f"a process that ended with {process.returncode}: {' / '.join(last)[-500:] or 'it said nothing'}",
            "Try it with TFDS alone: python -c \"import tensorflow_datasets as tfds; tfds.load('NAME')\".",
        )
    return answer


def _told(line: str) -> dict[str, Any]:
    """A line of ours; nothing for what TFDS and its libraries print."""
    try:
        told = json.loads(line)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
