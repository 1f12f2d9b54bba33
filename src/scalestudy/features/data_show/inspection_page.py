"""The results of inspecting data sets as a document."""

from collections.abc import Iterator, Sequence

from scalestudy.data.images import pictures
from scalestudy.features.data_show.inspection import (
    ClassCount,
    DataWarning,
    Inspection,
    SamplePicture,
)
from scalestudy.report.document import (
    Block,
    Document,
    Items,
    Paragraph,
    Photo,
    Photos,
    Section,
    Table,
    headings_of,
)

MOST_SAMPLES = 10
"""Maximum number of samples listed in a warning; JSON output lists all."""
MOST_SIZES = 10


def inspection_document(
    inspections: Sequence[Inspection], *, pictured: bool = True
) -> Document:
    """Return a document on one or several data sets; without pictures unless `pictured`."""
    if len(inspections) == 1:
        blocks = tuple(_blocks(inspections[0], pictured))
        return Document(inspections[0].source, blocks, "Data set")
    sections = []
    for number, inspection in enumerate(inspections, start=1):
        blocks = tuple(_blocks(inspection, pictured))
        sections.append(Section(inspection.source, blocks, f"set-{number}"))
    return Document("Data sets", tuple(sections))


def _blocks(inspection: Inspection, pictured: bool) -> Iterator[Block]:
    lines = [f"{name}: {text}" for name, text in inspection.facts.items()]
    samples = f"Samples: {inspection.count:,}"
    by_split = [f"{count:,} {split}" for split, count in inspection.splits.items()]
    if by_split:
        samples += f" ({', '.join(by_split)})"
    yield Items((*lines, samples))
    yield Section("Warnings", tuple(_warnings(inspection.warnings)))
    if pictured and inspection.pictures:
        photos = tuple(map(_photo, inspection.pictures))
        yield Section("Samples", (Photos(photos),))
    yield Section("Classes", (_class_table(inspection),))
    title = "Sizes"
    if len(inspection.sizes) > MOST_SIZES:
        title = f"Most frequent of {len(inspection.sizes)} sizes"
    yield Section(title, (_size_table(inspection),))


def _size_table(inspection: Inspection) -> Table:
    rows = []
    for size, count, first in inspection.sizes[:MOST_SIZES]:
        height, width = size
        row = (f"{height} x {width}", f"{count:,}", first)
        rows.append(row)
    headings = headings_of("Height x width", "Images", "First of them:")
    return Table(headings, tuple(rows))


def _warnings(warnings: Sequence[DataWarning]) -> Iterator[Block]:
    if not warnings:
        yield Paragraph("None.")
    for warning in warnings:
        mark = ""
        if warning.serious:
            mark = "Serious: "
        yield Paragraph(f"{mark}{warning.title}. {warning.action}")
        # Thousands of files may have one fault.
        named = list(warning.samples[:MOST_SAMPLES])
        more = len(warning.samples) - MOST_SAMPLES
        if more > 0:
            named.append(f"and {more:,} more")
        if named:
            yield Items(tuple(named))


def _class_table(inspection: Inspection) -> Table:
    splits: list[str] = []
    if inspection.classes:
        splits = list(inspection.classes[0].splits)
    words = ("Samples", "Share")
    if inspection.kind == "masks":
        words = ("In masks of", "Of pixels")
    rows = []
    for count in inspection.classes:
        in_splits = [f"{count.splits[split]:,}" for split in splits]
        samples = f"{count.samples:,}"
        rows.append((count.name, samples, _share(count), *in_splits))
    headings = headings_of("Class:", *words, *splits)
    return Table(headings, tuple(rows))


def _photo(picture: SamplePicture) -> Photo:
    caption = f"{picture.name}: {picture.about}"
    # A text for those who do not see the picture.
    images = [(pictures.png(picture.image), f"Sample {caption}")]
    if picture.overlay is not None:
        overlay = pictures.png(picture.overlay)
        images.append((overlay, "The same with its mask laid over it"))
    return Photo(caption, tuple(images))


def _share(count: ClassCount) -> str:
    # A rare class must not look like one that is nowhere.
    if count.share >= 0.001 or not count.share:
        return f"{count.share:.1%}"
    return f"{count.share:.2g}"
