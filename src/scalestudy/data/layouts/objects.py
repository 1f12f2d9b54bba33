"""A folder for each image, with the image and a mask of each of its objects: `ID/images/`, `ID/masks/`.

The layout of the Data Science Bowl 2018 (J. C. Caicedo et al., Nature Methods 16, 2019).
"""

from pathlib import Path

from scalestudy.data import layout
from scalestudy.data.files_in import image_files, several
from scalestudy.data.layouts.base import Item, Layout, Listed, Scan
from scalestudy.data.layouts.look import Look
from scalestudy.data.layouts.matching import matched
from scalestudy.data.layouts.pairs import couple
from scalestudy.data.left_out import Leftovers
from scalestudy.data.masks import MaskFile, ObjectMasks
from scalestudy.errors import UserError

NO_MASKS = "a split without masks"


def _recognise(folder: Look) -> bool:
    """Whether most folders inside it hold images and masks; one without masks is a mistake to be named."""
    inside = list(folder.folders.values())
    return bool(inside) and 2 * sum(couple(each) is not None for each in inside) > len(inside)


def _list(scan: Scan) -> Listed:
    items: list[Item] = []
    overlapping: set[Path] = set()
    for split, part in scan.parts.items():
        inside = list(part.folders.values())
        layout.leave_others(part.path, [each.path for each in inside], scan.left)
        missing = [each.path for each in inside if couple(each) is None]
        if len(missing) == len(inside) and split != "train":
            scan.left.add(NO_MASKS, part.path)
            continue
        if missing:
            raise UserError(
                "images/ and masks/ in the folder of every image",
                f"{several([f'{path}/' for path in missing])} without them",
                "Add the masks, or move these folders out of the data set.",
            )
        for each in inside:
            items += _of(each, split, scan.left, overlapping)
    joined = [item.target for item in items if isinstance(item.target, ObjectMasks)]
    if not joined:
        return Listed(items, "a folder with images/ and masks/ for each group of images")
    objects = sum(len(mask.files) for mask in joined)
    return Listed(
        items,
        f"a folder for each image with a mask of each object: {objects} objects in {len(joined)} images, "
        "joined to background and foreground",
        ["background", "foreground"],
        told_after=lambda: f"{len(overlapping)} objects lie on others" if overlapping else "",
    )


def _of(folder: Look, split: str, left: Leftovers, overlapping: set[Path]) -> list[Item]:
    both = couple(folder)
    assert both is not None
    layout.leave_others(folder.path, both, left)
    images, masks = (image_files(each, left) for each in both)
    if len(images) == 1:
        return [Item(images[0], ObjectMasks(tuple(masks), overlapping), split)]
    pairs, _ = matched(images, masks)
    return [Item(image, MaskFile(mask), split, folder.path.name) for image, mask in pairs]


LAYOUT = Layout(
    name="objects",
    words="a folder for each image with images/ and masks/, a mask for each object",
    recognise=lambda folder, _: _recognise(folder),
    list=_list,
)
