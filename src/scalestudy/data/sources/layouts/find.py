"""From a folder to its samples: which layout it has, and what then lies in it.

To add a layout, write its file and name it in the tables below.
"""

from pathlib import Path

from scalestudy.data.sources.base import COLUMNS, refuse_unused
from scalestudy.data.sources.files import shown_entries
from scalestudy.data.sources.layouts.base import Layout, Look, Scan
from scalestudy.data.sources.layouts.classes import CLASSES, LABELS, plausible
from scalestudy.data.sources.layouts.coco import COCO
from scalestudy.data.sources.layouts.listing import Listing, listing_of
from scalestudy.data.sources.layouts.names import LAYOUTS, leave_others
from scalestudy.data.sources.layouts.objects import OBJECTS
from scalestudy.data.sources.layouts.pairs import PAIRS, PATTERNS, SPLIT_PAIRS, SUFFIXES
from scalestudy.data.sources.layouts.table import TABLE, Sheet, columns_of, list_sheets
from scalestudy.data.sources.left_out import Leftovers
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

STRUCTURES: tuple[Layout, ...] = (
    SPLIT_PAIRS,
    PAIRS,
    OBJECTS,
    SUFFIXES,
    CLASSES,
)
"""Those that the names of files and folders tell: a folder has the first that is recognised."""
DOCUMENTS: tuple[Layout, ...] = (COCO, TABLE)
"""Those that a file beside the images tells."""
ASKED: dict[str, Layout] = {
    "images": PATTERNS,
    "masks": PATTERNS,
    "label_pattern": LABELS,
}
"""Those that a key of [data] asks for."""
NAMES: dict[str, Layout] = {each.name: each for each in (*STRUCTURES, *DOCUMENTS, *ASKED.values())}


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
    scan = Scan(Look(table.parent), data, Leftovers(table.parent))
    return listing_of(list_sheets([Sheet(table, columns, "")], scan), scan)


def list_folder(root: Path, data: DataSettings) -> Listing:
    """Find out the layout of a folder by its names, and list its samples.

    Raises:
        UserError: It has none, or several; or its samples contradict each other.
    """
    scan = Scan(Look(root), data, Leftovers(root))
    chosen = _asked(data) or _recognised(scan)
    if chosen is not TABLE:
        refuse_unused(data, COLUMNS, f"{root}: {chosen.words}")
    if not chosen.whole and "" not in scan.parts:
        leave_others(root, [part.path for part in scan.parts.values()], scan.left)
    return listing_of(chosen.list(scan), scan)


def _asked(data: DataSettings) -> Layout | None:
    if data.layout is not None:
        return NAMES[data.layout]
    return next((layout for key, layout in ASKED.items() if getattr(data, key) is not None), None)


def _recognised(scan: Scan) -> Layout:
    layouts = [document for document in DOCUMENTS if document.recognise(scan.root, scan.data)]
    structure = _structure(scan, strict=not layouts)
    if structure is not None and not (layouts and structure is CLASSES and not plausible(scan)):
        layouts.append(structure)
    if len(layouts) > 1:
        names = " or ".join(f'"{layout.name}"' for layout in layouts)
        raise UserError(
            "a folder that can be understood in one way",
            f"{scan.root.path}, which may be {' or '.join(layout.words for layout in layouts)}",
            f"Say which under [data]: layout = {names}.",
        )
    if not layouts:
        raise _unknown(scan.root.path)
    return layouts[0]


def _structure(scan: Scan, *, strict: bool) -> Layout | None:
    """The layout that the names of files and folders tell, the same in every split; None without one.

    Raises:
        UserError: splits differ, or one has none; only if `strict`, since a table needs no such layout.
    """
    for structure in STRUCTURES:
        if structure.whole and structure.recognise(scan.root, scan.data):
            return structure
    try:
        of_part = {split: _of_part(part, scan.data) for split, part in scan.parts.items()}
    except UserError:
        if strict:
            raise
        return None
    layouts = [layout for layout in of_part.values() if layout is not None]
    # A test set of images without masks is left out by the layout of objects, and told.
    missing = (
        [] if layouts and layouts[0].name == "objects" else [split for split in of_part if not of_part[split]]
    )
    if not layouts or (not strict and (missing or len(set(layouts)) > 1)):
        return None
    if missing:
        raise _unknown(scan.parts[missing[0]].path)
    if len(set(layouts)) > 1:
        raise UserError(
            "the same layout in every split",
            f"{' in some and '.join(layout.words for layout in dict.fromkeys(layouts))} in others "
            f"under {scan.root.path}",
            "Give every split the layout of train/.",
        )
    return layouts[0]


def _of_part(part: Look, data: DataSettings) -> Layout | None:
    return next(
        (structure for structure in STRUCTURES if not structure.whole and structure.recognise(part, data)),
        None,
    )


def _unknown(folder: Path) -> UserError:
    return UserError(
        f"a folder with {LAYOUTS}",
        f"{folder}, which holds {shown_entries(folder)}",
        "Arrange the files in one of these ways, say where they lie (`images` and `masks` under [data]), or "
        "name another folder as the source.",
    )
