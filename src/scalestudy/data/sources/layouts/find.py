"""From a folder to its samples: which layout it has, and what then lies in it.

To add a layout, write its file and name it in the tables below.
"""

from pathlib import Path

from scalestudy.data.sources.base import COLUMNS, refuse_unused
from scalestudy.data.sources.files import shown_entries
from scalestudy.data.sources.layouts.base import Directory, Layout, Listing, Scan, leave_others
from scalestudy.data.sources.layouts.classes import CLASSES, LABELS, plausible
from scalestudy.data.sources.layouts.coco import COCO
from scalestudy.data.sources.layouts.listing import finished
from scalestudy.data.sources.layouts.pairs import PAIRS, PATTERNS, SUFFIXES
from scalestudy.data.sources.layouts.table import TABLE, Sheet, columns_of, list_sheets
from scalestudy.data.sources.left_out import Leftovers
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

STRUCTURES: tuple[Layout, ...] = (PAIRS, SUFFIXES, CLASSES)
"""Those that the names of files and folders tell: a folder has the first that is recognised."""
DOCUMENTS: tuple[Layout, ...] = (COCO, TABLE)
"""Those that a file beside the images tells."""
ASKED: dict[str, Layout] = {"images": PATTERNS, "masks": PATTERNS, "label_pattern": LABELS}
"""Those that a key of [data] asks for."""
NAMES: dict[str, Layout] = {layout.name: layout for layout in (*STRUCTURES, *DOCUMENTS)}


def list_table(table: Path, data: DataSettings) -> Listing:
    """The samples of a table that is named as the source; its files are seen from its folder.

    Raises:
        UserError: it has no columns of files and of classes or masks, or its samples contradict each other.
    """
    columns = columns_of(table, data)
    if columns is None:
        raise UserError(
            "a table with a column of files (file, image_id, ...) and one of classes (label, ...) or masks",
            f"the file {table} without them",
            "Name the columns: `file_column` and `label_column` under [data].",
        )
    scan = Scan(Directory(table.parent), data, Leftovers(table.parent))
    return finished(list_sheets([Sheet(table, columns, "")], scan), scan)


def list_folder(root: Path, data: DataSettings) -> Listing:
    """Find out the layout of a folder by its names, and list its samples.

    Raises:
        UserError: It has none, or several; or its samples contradict each other.
    """
    scan = Scan(Directory(root), data, Leftovers(root))
    layout = _asked(data) or _recognised(scan)
    if layout is not TABLE:
        refuse_unused(data, COLUMNS, f"{root}: {layout.words}")
    if not layout.whole and "" not in scan.parts:
        leave_others(root, [part.path for part in scan.parts.values()], scan.left)
    return finished(layout.list(scan), scan)


def _asked(data: DataSettings) -> Layout | None:
    if data.layout is not None:
        return NAMES[data.layout]
    return next((layout for key, layout in ASKED.items() if getattr(data, key) is not None), None)


def _recognised(scan: Scan) -> Layout:
    layouts = [layout for layout in DOCUMENTS if layout.recognise(scan.root, scan.data)]
    try:
        structure = _structure(scan)
    except UserError:
        if not layouts:  # beside a table, folders need no layout
            raise
        structure = None
    if structure is not None and not (layouts and structure is CLASSES and not plausible(scan)):
        layouts.append(structure)
    if len(layouts) > 1:
        names = " or ".join(f'"{layout.name}"' for layout in layouts)
        raise UserError(
            "a folder that can be understood in one way",
            f"{scan.root.path}, which may be {' or '.join(layout.words for layout in layouts)}",
            f"Say which under [data]: layout = {names}.",
        )
    return layouts[0]


def _structure(scan: Scan) -> Layout:
    """The layout that the names of files and folders tell, the same in every split.

    Raises:
        UserError: there is none, or splits differ.
    """
    if PAIRS.recognise(scan.root, scan.data):
        return PAIRS
    layouts: list[Layout] = []
    for part in scan.parts.values():
        layout = next((layout for layout in STRUCTURES if layout.recognise(part, scan.data)), None)
        if layout is None:
            raise UserError(
                "a folder with images/ and masks/ whose files pair by name, or one folder of images for each "
                "class (either of them, if you like, inside train/, val/ and test/), or another of the "
                "layouts in docs/data.md",
                f"{part.path}, which holds {shown_entries(part.path)}",
                "Arrange the files in one of these ways, say where they lie (`images` and `masks` under "
                "[data]), or name another folder as the source.",
            )
        layouts.append(layout)
    if len(set(layouts)) > 1:
        raise UserError(
            "the same layout in every split",
            f"{' in some and '.join(layout.words for layout in dict.fromkeys(layouts))} in others "
            f"under {scan.root.path}",
            "Give every split the layout of train/.",
        )
    return layouts[0]
