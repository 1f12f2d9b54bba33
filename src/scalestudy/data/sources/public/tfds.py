"""Any set of TensorFlow Datasets: "tfds:NAME", "tfds:NAME/CONFIG:VERSION", or "tfds:/FOLDER/NAME/VERSION".

TFDS itself runs in a process of its own (`tfds_export`), once: what it writes is read like any folder or
.npz file, by whoever has no TFDS.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from scalestudy.data.sources.base import digest, files_digest
from scalestudy.data.sources.files import LeftOut
from scalestudy.data.sources.process import ask_module
from scalestudy.data.sources.public.base import About, Public, Recipe, stored_about
from scalestudy.data.sources.public.download import Downloading
from scalestudy.data.sources.registry import Kind
from scalestudy.study.settings import DataSettings
from scalestudy.util import modules
from scalestudy.util.errors import UserError

FORM = 'tfds:NAME, "tfds:NAME/CONFIG:VERSION" or "tfds:/FOLDER/NAME/VERSION", each with @FEATURE if need be'
_NAME = re.compile(r"[a-z0-9_]+(:[a-z0-9_]+)?(/[\w.+-]+)?(:(\*|[\d.*]+))?", re.IGNORECASE)
_VERSION = 1
"""Raised with every change of how a set of TFDS is written out."""


@dataclass(frozen=True)
class TfdsName:
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


def name_of(argument: str | None) -> TfdsName:
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
        return TfdsName(text, str(folder), folder, feature or None)
    if not _NAME.fullmatch(name):
        raise UserError(FORM, f'"{text}"' if argument else '"tfds" without a name', "Correct the name.")
    return TfdsName(text, name, None, feature or None)


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
    labels = [name for name, kind in kinds.items() if kind == "ClassLabel"]
    pictures = [name for name, kind in kinds.items() if kind in ("Image", "LabeledImage")]
    masks = [name for name in pictures if kinds[name] == "LabeledImage" or _is_mask(name)]
    images = [name for name in pictures if name not in masks and name != wanted]
    image = "image" if "image" in images else images[0] if len(images) == 1 else None
    targets = masks if len(masks) == 1 else labels
    target = "label" if "label" in targets else targets[0] if len(targets) == 1 else None
    target = wanted if wanted in (*labels, *pictures) else target if wanted is None else None
    if image is None or target is None or target == image:
        raise UserError(
            "a data set of images, each with one class label or one segmentation mask",
            f"{text} with {', '.join(f'{name} ({kind})' for name, kind in kinds.items())}",
            "Name the target: tfds:NAME@FEATURE; or save the set as a folder or an .npz file.",
        )
    return image, target, "classes" if target in labels else "masks"


def _is_mask(name: str) -> bool:
    return any(word in name.lower() for word in ("mask", "segmentation"))


def tfds(argument: str | None, data: DataSettings) -> Public:
    """The source "tfds:...": what its set holds is looked up, and nothing fetched or prepared."""
    name = name_of(argument)
    content, shown = "", name.name
    if name.folder is not None:
        content = files_digest(name.folder, sorted(name.folder.glob("*.*")))
        shown = "/".join(name.folder.parts[-2:])
    label = f"tfds-{re.sub(r'[^A-Za-z0-9._-]+', '-', shown)[-40:]}-{digest(name.text, content)[:8]}"
    known = stored_about(data, label)
    kind: Kind = "masks" if (known.facts["kind"] if known else _kind(name.text)) == "masks" else "classes"
    recipe = Recipe(label, name.text, kind, f"{_VERSION} {content}", partial(_export, name.text, kind))
    return Public(recipe, data)


@cache  # a process of some seconds
def _kind(text: str) -> str:
    return str(ask("kind", text)["kind"])


def _export(text: str, kind: Kind, folder: Path, store: Path, downloading: Downloading) -> About:
    with downloading(text, "samples") as on_samples:
        answer = ask("export", text, str(folder), on_samples=on_samples)
    left_out = tuple(LeftOut(reason, 1, (name,)) for name, reason in answer["left_out"])
    return About(answer["class_names"], left_out, {"kind": kind, "set": answer["set"]})


def ask(
    what: str, text: str, *more: str, on_samples: Callable[[int, int], None] | None = None
) -> Mapping[str, Any]:
    """The answer of a process with TFDS.

    Raises:
        UserError: TFDS is missing, does not know the set, or cannot have it.
    """
    # TensorFlow computes nothing there: it leaves the memory of GPUs to others.
    quietly = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    answer, code, last = ask_module(modules.TFDS, what, text, *more, on_progress=on_samples, **quietly)
    if code or not answer:
        raise UserError(
            f"TensorFlow Datasets to read {text}",
            f"a process that ended with {code}: {last or 'no output'}",
            "Try it with TFDS alone: python -c \"import tensorflow_datasets as tfds; tfds.load('NAME')\".",
        )
    return answer
