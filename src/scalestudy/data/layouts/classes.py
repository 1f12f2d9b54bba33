"""A folder of images for each class."""

from scalestudy.data import layout
from scalestudy.data.files_in import image_files
from scalestudy.data.layouts.base import Item, Layout, Listed, Scan
from scalestudy.data.layouts.look import Look
from scalestudy.data.layouts.names import role
from scalestudy.data.layouts.pairs import USUAL


def _recognise(folder: Look) -> bool:
    # Of a folder with one of images/ and masks/ the other is missing: its folders are no classes.
    if {name.lower() for name in folder.folders} & set(USUAL):
        return False
    return any(each.images for each in folder.folders.values())


def plausible(scan: Scan) -> bool:
    """Whether its folders may be classes though a table tells these: two or more, none named like images."""
    return any(
        sum(bool(each.images) and role(name) == (None, None) for name, each in part.folders.items()) > 1
        for part in scan.parts.values()
    )


def _list(scan: Scan) -> Listed:
    items: list[Item] = []
    for split, part in scan.parts.items():
        inside = part.folders
        layout.leave_others(part.path, [each.path for each in inside.values()], scan.left)
        for name, folder in inside.items():
            items += [Item(image, name, split) for image in image_files(folder.path, scan.left)]
    names = list(next(iter(scan.parts.values())).folders)
    return Listed(items, "one folder of images for each class", names)


LAYOUT = Layout(
    name="classes",
    words="one folder of images for each class",
    recognise=lambda folder, _: _recognise(folder),
    list=_list,
)
