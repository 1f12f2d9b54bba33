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
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from scalestudy.data.sources.base import digest, files_digest
from scalestudy.data.sources.left_out import LeftOut
from scalestudy.data.sources.public.base import About, Public, Recipe, stored_about
from scalestudy.data.sources.public.download import Downloading
from scalestudy.data.sources.registry import Kind
from scalestudy.study.settings import DataSettings
from scalestudy.util import modules
from scalestudy.util.errors import UserError

FORM = 'tfds:NAME, "tfds:NAME/CONFIG:VERSION" or "tfds:/FOLDER/NAME/VERSION", each with @FEATURE if need be'
_NAME = re.compile(r"[a-z0-9_]+(:[a-z0-9_]+)?(/[\w.+-]+)?(:(\*|[\d.*]+))?", re.IGNORECASE)
_LABEL, _IMAGE = "ClassLabel", "Image"


@dataclass(frozen=True)
class Request:
    """A source of TFDS, taken apart.

    Attributes:
        text: As the study file has it.
        name: As TFDS takes it, or the path of a folder.
        folder: The folder of a prepared set, if that was named.
        feature: Name of the target, None where the set's own features tell.
    """

    text: str
    name: str
    folder: Path | None
    feature: str | None

    @property
    def shown(self) -> str:
        """Its name, for people."""
        return self.name if self.folder is None else "/".join(self.folder.parts[-2:])

    def kind(self) -> Kind | None:
        """What the set holds, by its folder's own files; None for a name that TFDS has not prepared here."""
        folder = self.folder or _kept(self.name)
        if folder is None:
            return None
        try:
            stored = json.loads((folder / "features.json").read_text())
            features = stored["featuresDict"]["features"]
            kinds = {key: str(value["pythonClassName"]).rpartition(".")[2] for key, value in features.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                "a folder with a features.json of TensorFlow Datasets 4",
                f"{folder}: {error}",
                "Name the folder of a version, such as tfds:/data/cassava/0.1.0.",
            ) from error
        return chosen(kinds, self.feature, self.text)[2]


def request_of(argument: str | None) -> Request:
    """Take "NAME@FEATURE" apart; a path has a slash or "~" at its start.

    Raises:
        UserError: it is neither a name of TFDS nor an existing folder.
    """
    name, _, feature = (argument or "").partition("@")
    text = f"tfds:{argument}"
    if name.startswith(("/", "~", "$")):
        folder = Path(os.path.abspath(os.path.expanduser(os.path.expandvars(name))))
        if not (folder / "dataset_info.json").is_file():
            raise UserError(
                "the folder of a version of a set of TensorFlow Datasets, with its dataset_info.json",
                f"{folder}, which {'has none' if folder.is_dir() else 'does not exist'}",
                "Name it as tfds:/FOLDER/NAME/VERSION or tfds:/FOLDER/NAME/CONFIG/VERSION.",
            )
        return Request(text, str(folder), folder, feature or None)
    if not _NAME.fullmatch(name):
        raise UserError(FORM, f'"{text}"' if argument else '"tfds" without a name', "Correct the name.")
    return Request(text, name, None, feature or None)


def _kept(name: str) -> Path | None:
    """Folder of the highest version of a set where TFDS keeps its own; None where it is not."""
    path, _, version = name.partition(":")
    root = Path(os.environ.get("TFDS_DATA_DIR") or os.path.expanduser("~/tensorflow_datasets"))
    folders = [file.parent for file in (root / path).glob("*/features.json")]
    alike = [folder for folder in folders if fnmatch(folder.name, version or "*")]
    return max(
        alike, key=lambda folder: [int(part) for part in re.findall(r"\d+", folder.name)], default=None
    )


def chosen(kinds: Mapping[str, str], wanted: str | None, text: str) -> tuple[str, str, Kind]:
    """Names of the image and of the target, and the kind of data that they make.

    The target is the feature asked for; else the only mask, which is an image with "mask" or "segmentation"
    in its name; else "label", or the only class label.

    Args:
        kinds: Class of each feature by its name, as "Image", "ClassLabel".
        wanted: The feature asked for.
        text: The source, for messages.

    Raises:
        UserError: there is not one image, or not one target.
    """
    labels = [name for name, kind in kinds.items() if kind == _LABEL]
    pictures = [name for name, kind in kinds.items() if kind in (_IMAGE, "LabeledImage")]
    masks = [name for name in pictures if kinds[name] == "LabeledImage" or _is_mask(name)]
    images = [name for name in pictures if name not in masks and name != wanted]
    image = "image" if "image" in images else images[0] if len(images) == 1 else None
    targets = masks if len(masks) == 1 else labels
    target = "label" if "label" in targets else targets[0] if len(targets) == 1 else None
    target = wanted if wanted in (*labels, *pictures) else target if wanted is None else None
    if image is None or target is None or target == image:
        raise UserError(
            "a set of images with one class label or one segmentation mask each",
            f"{text} with {', '.join(f'{name} ({kind})' for name, kind in kinds.items())}",
            "Name the target: tfds:NAME@FEATURE; or write the set out as a folder or an .npz file.",
        )
    return image, target, "classes" if target in labels else "masks"


def _is_mask(name: str) -> bool:
    return any(word in name.lower() for word in ("mask", "segmentation"))


_VERSION = 1
"""Raised with every change of how a set of TFDS is written out."""
_QUIETLY = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
"""TensorFlow computes nothing there: it leaves the memory of GPUs to others."""


def tfds(argument: str | None, data: DataSettings) -> Public:
    """The source "tfds:...": what its set holds is looked up, and nothing fetched or prepared."""
    request = request_of(argument)
    content = (
        "" if request.folder is None else files_digest(request.folder, sorted(request.folder.glob("*.*")))
    )
    label = (
        f"tfds-{re.sub(r'[^A-Za-z0-9._-]+', '-', request.shown)[-40:]}-{digest(request.text, content)[:8]}"
    )
    known = stored_about(data, label)
    # Of a prepared set its own files tell; of another only TFDS, which takes some seconds, once.
    kind = known.facts["kind"] if known else request.kind() or ask("kind", request)["kind"]
    kind_of_set: Kind = "masks" if kind == "masks" else "classes"
    make = partial(_export, request, kind_of_set)
    return Public(Recipe(label, request.text, kind_of_set, f"{_VERSION} {content}", make), data)


def _export(request: Request, kind: Kind, folder: Path, store: Path, downloading: Downloading) -> About:
    with downloading(request.text, "samples") as on_samples:
        answer = ask("export", request, str(folder), on_samples=on_samples)
    left_out = tuple(LeftOut(reason, 1, (name,)) for name, reason in answer["left_out"])
    return About(answer["class_names"], left_out, {"kind": kind, "set": answer["set"]})


def ask(what: str, request: Request, *more: str, on_samples: Any = None) -> dict[str, Any]:
    """The answer of a process with TFDS; what it writes meanwhile goes to a file that is named if it fails.

    Raises:
        UserError: TFDS is missing, does not know the set, or cannot have it.
    """
    command = [sys.executable, "-P", "-m", modules.TFDS, what, request.text, *more]
    answer: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **_QUIETLY}
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    message = _message_of(line)
                    if "done" in message and on_samples is not None:
                        on_samples(message["done"], message["total"])
                    answer = message or answer
            except BaseException:
                process.kill()
                raise
        errors.seek(0)
        last = [line.strip() for line in errors.read().splitlines() if line.strip()][-3:]
    if "expected" in answer:
        raise UserError(answer["expected"], answer["received"], answer["action"])
    if process.returncode or not ("kind" in answer or "set" in answer):
        raise UserError(
            f"TensorFlow Datasets to read {request.text}",
            f"a process that ended with {process.returncode}: {' / '.join(last)[-500:] or 'it said nothing'}",
            "Try it with TFDS alone: python -c \"import tensorflow_datasets as tfds; tfds.load('NAME')\".",
        )
    return answer


def _message_of(line: str) -> dict[str, Any]:
    """A line of ours; nothing for what TFDS and its libraries print."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
