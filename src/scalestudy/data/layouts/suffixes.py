"""Images and masks in one folder, told by a word in their names: `a.png` with `a_mask.png`."""

from scalestudy.data import layout
from scalestudy.data.files_in import image_files
from scalestudy.data.layouts.base import Item, Layout, Listed, Scan
from scalestudy.data.layouts.look import Look
from scalestudy.data.layouts.matching import matched
from scalestudy.data.layouts.names import stripped
from scalestudy.data.masks import MaskFile

_LEAST = 0.25
"""Part of a folder's images that are masks of others there; of complete pairs it is a half."""


def _is_mask(name: str) -> bool:
    return stripped(name.rpartition(".")[0])[1] == "mask"


def _holds_both(folder: Look) -> bool:
    if not any(map(_is_mask, folder.images)):
        return False
    stems = [stripped(name.rpartition(".")[0]) for name in folder.images]
    others = {rest for rest, what in stems if what != "mask"}
    return sum(rest in others for rest, what in stems if what == "mask") >= _LEAST * len(stems)


def _recognise(folder: Look) -> bool:
    """Pairs in the folder itself, or in each folder inside it."""
    if folder.images:
        return _holds_both(folder)
    return bool(folder.folders) and all(_holds_both(each) for each in folder.folders.values())


def _list(scan: Scan) -> Listed:
    items: list[Item] = []
    for split, part in scan.parts.items():
        nested = not part.images
        if nested:
            layout.leave_others(part.path, [each.path for each in part.folders.values()], scan.left)
        for folder in part.folders.values() if nested else [part]:
            files = image_files(folder.path, scan.left)
            masks = [file for file in files if _is_mask(file.name)]
            others = set(masks)
            pairs, _ = matched([file for file in files if file not in others], masks)
            group = folder.path.name if nested else None
            items += [Item(image, MaskFile(mask), split, group) for image, mask in pairs]
            example = (pairs[0][0].name, pairs[0][1].name)
    told = f"images and masks in one folder, as {example[0]} with {example[1]}"
    return Listed(items, told + ("; each folder is a group" if items[0].group else ""))


LAYOUT = Layout(
    name="suffixes",
    words="images and masks in one folder, as a.png with a_mask.png",
    recognise=lambda folder, _: _recognise(folder),
    list=_list,
)
