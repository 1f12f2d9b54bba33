"""Folders of images and of masks with splits inside them or in their names.

`images/train/` with `masks/train/`, `train_images/` with `train_masks/`, or `train/` with `train_masks/`.
"""

from scalestudy.data import layout
from scalestudy.data.layouts.base import Item, Layout, Listed, Scan
from scalestudy.data.layouts.look import Look
from scalestudy.data.layouts.names import role
from scalestudy.data.layouts.pairs import paired
from scalestudy.errors import UserError

_Couples = dict[str, tuple[Look, Look]]


def _couples(root: Look) -> _Couples:
    """Folders of images and masks by split, "train" among them; empty where there are none."""
    found: dict[str, dict[str, Look]] = {}
    for name, folder in root.folders.items():
        what, split = role(name)
        if split is not None and folder.images:
            _take(found.setdefault(split, {}), what or "image", folder)
        elif what is not None and not folder.images:
            for inner, each in folder.folders.items():
                inner_what, inner_split = role(inner)
                if inner_split is not None and inner_what in (None, what):
                    _take(found.setdefault(inner_split, {}), what, each)
    couples = {split: (both["image"], both["mask"]) for split, both in found.items() if len(both) == 2}
    return couples if "train" in couples else {}


def _take(both: dict[str, Look], what: str, folder: Look) -> None:
    """Note the folder of images or of masks of a split.

    Raises:
        UserError: there are two.
    """
    other = both.setdefault(what, folder)
    if other is not folder:
        raise UserError(
            f"one folder for the {what}s of a split",
            f"{other.path} and {folder.path}",
            'Say which: `images = "FOLDER/**/*"` and `masks = "FOLDER/**/*"` under [data].',
        )


def _list(scan: Scan) -> Listed:
    items: list[Item] = []
    told = ""
    couples = _couples(scan.root)
    taken = {folder.path for both in couples.values() for folder in both}
    above = {path.parent for path in taken} - {scan.root.path}
    layout.leave_others(scan.root.path, taken | above, scan.left)
    for folder in sorted(above):
        layout.leave_others(folder, taken, scan.left)
    for split, (images, masks) in couples.items():
        found, how = paired(images.path, masks.path, split, scan)
        items += found
        names = [folder.path.relative_to(scan.root.path).as_posix() for folder in (images, masks)]
        told = told or f"{names[0]}/ and {names[1]}/ (likewise other splits), paired {how}"
    return Listed(items, told)


LAYOUT = Layout(
    name="split-pairs",
    words="images/train/ and masks/train/, or train_images/ and train_masks/, and so on",
    recognise=lambda root, _: bool(_couples(root)),
    list=_list,
    whole=True,
)
