"""Sets of TensorFlow Datasets: "tfds:NAME", "tfds:NAME/CONFIG:VERSION", or "tfds:/FOLDER/NAME/VERSION".

TFDS runs once in a separate process (`tfds_export`). Its export is read like any folder or .npz file, also
in environments without TFDS.
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
"""Increased with every change of the exported format."""


@dataclass(frozen=True)
class TfdsName:
    """The parsed name of a TFDS source.

    Attributes:
        text: Name in the study file.
        name: Name for TFDS, or the path of a folder.
        folder: Folder of a prepared set, if given.
        feature: Name of the target; None to choose it from the set's features.
    """

    text: str
    name: str
    folder: Path | None
    feature: str | None


def name_of(argument: str | None) -> TfdsName:
    """Parse "NAME@FEATURE". A path starts with "/", "~" or "$".

    Raises:
        UserError: If it is neither a valid name for TFDS nor the folder of a set.
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
    """Return the names of the image and the target, and the kind of data.

    The target is `wanted`; else the only mask (a LabeledImage, or an image with "mask" or "segmentation" in
    its name); else "label"; else the only class label.

    Args:
        kinds: Class of each feature by name, such as "Image" or "ClassLabel".
        wanted: Requested target, or None.
        text: The source, for messages.

    Raises:
        UserError: If the image or the target is missing or ambiguous.
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
    """Return the source "tfds:...". Looks up the kind of the set, but downloads and prepares nothing."""
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


@cache  # starts a process, which takes seconds
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
    """Return the answer of a process with TFDS.

    Raises:
        UserError: If TFDS is missing, does not know the set, or cannot download it.
    """
    # TensorFlow computes nothing there, so it must not reserve GPU memory.
    quietly = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    answer, code, last = ask_module(modules.TFDS, what, text, *more, on_progress=on_samples, **quietly)
    if code or not answer:
        raise UserError(
            f"TensorFlow Datasets to read {text}",
            f"a process that ended with {code}: {last or 'no output'}",
            "Try it with TFDS alone: python -c \"import tensorflow_datasets as tfds; tfds.load('NAME')\".",
        )
    return answer
