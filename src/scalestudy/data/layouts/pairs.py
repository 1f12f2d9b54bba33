"""A folder of images and one of their masks, side by side: `images/` and `masks/`, or other usual names."""

from pathlib import Path

from scalestudy.data import layout
from scalestudy.data.files_in import image_files
from scalestudy.data.layouts.base import Item, Layout, Listed, Scan
from scalestudy.data.layouts.look import Look
from scalestudy.data.layouts.matching import matched
from scalestudy.data.layouts.names import role
from scalestudy.data.masks import MaskFile
from scalestudy.errors import UserError

USUAL = ("images", "masks")


def couple(folder: Look) -> tuple[Path, Path] | None:
    """The folders of images and of masks inside `folder`, if it has both.

    Raises:
        UserError: there are two for one of them.
    """
    if {name.lower() for name in folder.folders} >= set(USUAL):
        both = [layout.named(folder.path, (name,), f"the {name}") for name in USUAL]
        return (both[0], both[1]) if both[0] and both[1] else None
    found: dict[str, list[Path]] = {"image": [], "mask": []}
    for name, each in folder.folders.items():
        what, split = role(name)
        if what and split is None and each.images:
            found[what].append(each.path)
    if not all(found.values()):
        return None
    for what, paths in found.items():
        if len(paths) > 1:
            raise UserError(
                f"one folder for the {what}s",
                f"{' and '.join(f'{path.name}/' for path in paths)} in {folder.path}",
                'Say which: `images = "FOLDER/*"` and `masks = "FOLDER/*"` under [data].',
            )
    return found["image"][0], found["mask"][0]


def paired(images: Path, masks: Path, split: str, scan: Scan) -> tuple[list[Item], str]:
    """The samples of two folders, and how they were paired."""
    pairs, how = matched(image_files(images, scan.left), image_files(masks, scan.left))
    return [Item(image, MaskFile(mask), split) for image, mask in pairs], how


def _list(scan: Scan) -> Listed:
    items: list[Item] = []
    told: list[str] = []
    for split, folder in scan.parts.items():
        both = couple(folder)
        assert both is not None
        layout.leave_others(folder.path, both, scan.left)
        found, how = paired(*both, split, scan)
        items += found
        told.append(f"{both[0].name}/ and {both[1].name}/, paired {how}")
    return Listed(items, told[0])


LAYOUT = Layout(
    name="pairs",
    words="images/ and masks/ whose files pair by name",
    recognise=lambda folder, _: couple(folder) is not None,
    list=_list,
)
