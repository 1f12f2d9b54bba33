"""The table of layouts. To add one, write its file, and name it here."""

from scalestudy.data.layouts import (
    classes,
    coco,
    labels,
    objects,
    pairs,
    patterns,
    sheet,
    split_pairs,
    suffixes,
)
from scalestudy.data.layouts.base import Layout

STRUCTURES: tuple[Layout, ...] = (
    split_pairs.LAYOUT,
    pairs.LAYOUT,
    objects.LAYOUT,
    suffixes.LAYOUT,
    classes.LAYOUT,
)
"""Those that the names of files and folders tell: a folder has the first that is recognised."""
DOCUMENTS: tuple[Layout, ...] = (coco.LAYOUT, sheet.LAYOUT)
"""Those that a file beside the images tells."""
ASKED: dict[str, Layout] = {
    "images": patterns.LAYOUT,
    "masks": patterns.LAYOUT,
    "label_pattern": labels.LAYOUT,
}
"""Those that a key of [data] asks for."""
NAMES: dict[str, Layout] = {each.name: each for each in (*STRUCTURES, *DOCUMENTS, *ASKED.values())}
