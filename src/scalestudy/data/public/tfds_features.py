"""What is asked of TensorFlow Datasets, and which of a set's features are the image and its target."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from scalestudy.data.kinds import Kind
from scalestudy.errors import UserError

FORM = 'tfds:NAME, "tfds:NAME/CONFIG:VERSION" or "tfds:/FOLDER/NAME/VERSION", each with @FEATURE if need be'
_NAME = re.compile(r"[a-z0-9_]+(:[a-z0-9_]+)?(/[\w.+-]+)?(:(\*|[\d.*]+))?", re.IGNORECASE)
_LABEL, _IMAGE = "ClassLabel", "Image"


@dataclass(frozen=True)
class Asked:
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


def asked_of(argument: str | None) -> Asked:
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
        return Asked(text, str(folder), folder, feature or None)
    if not _NAME.fullmatch(name):
        raise UserError(FORM, f'"{text}"' if argument else '"tfds" without a name', "Correct the name.")
    return Asked(text, name, None, feature or None)


def _kept(name: str) -> Path | None:
    """Folder of the highest version of a set where TFDS keeps its own; None where it is not."""
    path, _, version = name.partition(":")
    root = Path(os.environ.get("TFDS_DATA_DIR") or os.path.expanduser("~/tensorflow_datasets"))
    found = [file.parent for file in (root / path).glob("*/features.json")]
    alike = [each for each in found if fnmatch(each.name, version or "*")]
    return max(alike, key=lambda each: [int(part) for part in re.findall(r"\d+", each.name)], default=None)


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
