"""A folder for each image, with the image and a mask of each of its objects: `ID/images/`, `ID/masks/`.

The layout of the Data Science Bowl 2018 (J. C. Caicedo et al., Nature Methods 16, 2019).
"""

from pathlib import Path

from scalestudy.data.images.masks import MaskFile, ObjectMasks
from scalestudy.data.sources.files import image_files, several
from scalestudy.data.sources.layouts.base import Item, Layout, Listed, Look, Scan
from scalestudy.data.sources.layouts.names import leave_others
from scalestudy.data.sources.layouts.pairs import couple, matched
from scalestudy.data.sources.left_out import Leftovers
from scalestudy.util.errors import UserError

NO_MASKS = "a split without masks"


def _recognise(folder: Look) -> bool:
    """Whether most folders inside it hold images and masks; one without masks is a mistake to be named."""
    inside = list(folder.folders.values())
    return bool(inside) and 2 * sum(couple(folder) is not None for folder in inside) > len(inside)


def _list(scan: Scan) -> Listed:
    samples: list[tuple[str, Look, list[Path], list[Path]]] = []
    for split, part in scan.parts.items():
        inside = list(part.folders.values())
        leave_others(part.path, [folder.path for folder in inside], scan.left)
        missing = [folder.path for folder in inside if couple(folder) is None]
        if len(missing) == len(inside) and split != "train":
            scan.left.add(NO_MASKS, part.path)
            continue
        if missing:
            raise UserError(
                "images/ and masks/ in the folder of every image",
                f"{several([f'{path}/' for path in missing])} without them",
                "Add the masks, or move these folders out of the data set.",
            )
        samples += [(split, folder, *_files(folder, scan.left)) for folder in inside]
    if _are_objects(samples):
        return _joined(samples)
    items = [
        Item(image, MaskFile(mask), split, folder.path.name)
        for split, folder, images, masks in samples
        for image, mask in matched(images, masks)[0]
    ]
    return Listed(items, "images/ and masks/ in the folder of each group of images")


def _files(folder: Look, left: Leftovers) -> tuple[list[Path], list[Path]]:
    both = couple(folder)
    assert both is not None
    leave_others(folder.path, both, left)
    return image_files(both[0], left), image_files(both[1], left)


def _are_objects(samples: list[tuple[str, Look, list[Path], list[Path]]]) -> bool:
    """Whether each folder holds one image, and not all of these have just a mask of their own name."""
    single = all(len(images) == 1 for _, _, images, _ in samples)
    return single and any(
        [mask.stem for mask in masks] != [images[0].stem] for _, _, images, masks in samples
    )


def _joined(samples: list[tuple[str, Look, list[Path], list[Path]]]) -> Listed:
    overlapping: set[Path] = set()
    items = [
        Item(images[0], ObjectMasks(tuple(masks), overlapping), split) for split, _, images, masks in samples
    ]
    objects = sum(len(masks) for _, _, _, masks in samples)
    return Listed(
        items,
        f"a folder for each image with a mask of each object: {objects} objects in {len(items)} images, "
        "joined to background and foreground",
        ["background", "foreground"],
        known_after=lambda: f"{len(overlapping)} objects lie on others" if overlapping else "",
    )


OBJECTS = Layout(
    name="objects",
    words="a folder for each image with images/ and masks/, a mask for each object",
    recognise=lambda folder, _: _recognise(folder),
    list=_list,
)
