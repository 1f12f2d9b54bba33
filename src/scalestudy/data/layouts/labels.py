"""Images whose names hold their classes, as `cat.0.jpg`: only where `label_pattern` under [data] says how."""

import re

from scalestudy.data.files_in import several
from scalestudy.data.layouts.base import Item, Layout, Listed, Scan
from scalestudy.data.layouts.index import images_below
from scalestudy.errors import UserError

NO_CLASS = "without a class in their names"


def _list(scan: Scan) -> Listed:
    pattern = re.compile(scan.data.label_pattern or "")
    items: list[Item] = []
    nameless: list[str] = []
    for split, part in scan.parts.items():
        for file in images_below(part.path):
            name = file.relative_to(part.path).as_posix()
            match = pattern.search(name)
            label = match and (match[1] if pattern.groups else match[0])
            if label is not None:
                items.append(Item(file, label, split))
            elif split in ("", "train"):
                nameless.append(name)
            else:
                scan.left.add(NO_CLASS, file)
    if nameless or not items:
        raise UserError(
            f"a class in the name of every image, as label_pattern = {pattern.pattern!r} finds it",
            f"{several(nameless) or 'no images'} in {scan.root.path}",
            "Correct the pattern (what its first brackets match is the class), or move these files away.",
        )
    return Listed(items, f"classes in the files' names, as label_pattern = {pattern.pattern!r} finds them")


LAYOUT = Layout(
    name="labels",
    words="images whose names hold their classes",
    recognise=lambda *_: False,
    list=_list,
)
