"""An inspection as a document, for the terminal or as a page."""

from collections.abc import Iterator, Sequence

from scalestudy.data.images import pictures
from scalestudy.features.inspect.data_warnings import ClassCount, DataWarning
from scalestudy.features.inspect.inspection import Inspection, SamplePicture
from scalestudy.report.document import (
    Block,
    Document,
    Heading,
    Items,
    Paragraph,
    Photo,
    Photos,
    Section,
    Table,
)

MOST_SAMPLES = 10
"""Maximum number of samples listed in a warning; JSON output lists all."""
MOST_SIZES = 10


def inspection_document(inspections: Sequence[Inspection], *, pictured: bool = True) -> Document:
    """Return a document on one or several data sets; without pictures unless `pictured`."""
    if len(inspections) == 1:
        return Document(inspections[0].source, tuple(_blocks(inspections[0], pictured)), "Data set")
    sections = [
        Section(inspection.source, tuple(_blocks(inspection, pictured)), f"set-{number}")
        for number, inspection in enumerate(inspections, start=1)
    ]
    return Document("Data sets", tuple(sections))


def _blocks(inspection: Inspection, pictured: bool) -> Iterator[Block]:
    yield Paragraph(f"Inspected: {inspection.basis}.")
    by_split = ", ".join(f"{count:,} {split}" for split, count in inspection.splits.items())
    samples = f"Samples: {inspection.count:,}" + (f" ({by_split})" if by_split else "")
    yield Items((*(f"{name}: {text}" for name, text in inspection.facts.items()), samples))
    yield Section("Warnings", tuple(_warnings(inspection.warnings)))
    if pictured and inspection.pictures:
        yield Section("Samples", (Photos(tuple(map(_photo, inspection.pictures))),))
    yield Section("Classes", (_class_table(inspection),))
    more = len(inspection.sizes) - MOST_SIZES
    yield Section(
        "Sizes", (_size_table(inspection), *([Paragraph(f"And {more:,} more.")] if more > 0 else []))
    )


def _warnings(warnings: Sequence[DataWarning]) -> Iterator[Block]:
    if not warnings:
        yield Paragraph("None.")
    for warning in warnings:
        yield Paragraph(f"{'Serious: ' * warning.serious}{warning.title}. {warning.action}")
        more = len(warning.samples) - MOST_SAMPLES
        if warning.samples:
            yield Items((*warning.samples[:MOST_SAMPLES], *([f"and {more:,} more"] if more > 0 else [])))


def _class_table(inspection: Inspection) -> Table:
    masks = inspection.kind == "masks"
    splits = list(inspection.classes[0].splits) if inspection.classes else []
    headings = (
        Heading("Class", numeric=False),
        Heading("In masks of" if masks else "Samples"),
        Heading("Of pixels" if masks else "Share"),
        *map(Heading, splits),
    )
    rows = tuple(
        (count.name, f"{count.samples:,}", _share(count), *(f"{count.splits[split]:,}" for split in splits))
        for count in inspection.classes
    )
    return Table(headings, rows)


def _size_table(inspection: Inspection) -> Table:
    rows = tuple(
        (f"{size[0]} x {size[1]}", f"{count:,}", first)
        for size, count, first in inspection.sizes[:MOST_SIZES]
    )
    return Table(
        (Heading("Height x width"), Heading("Images"), Heading("First of them", numeric=False)), rows
    )


def _photo(picture: SamplePicture) -> Photo:
    images = [(pictures.png(picture.image), f"Sample {picture.name}: {picture.about}")]
    if picture.overlay is not None:
        images.append((pictures.png(picture.overlay), "The same with its mask laid over it"))
    return Photo(f"{picture.name}: {picture.about}", tuple(images))


def _share(count: ClassCount) -> str:
    return f"{count.share:.1%}" if count.share >= 0.001 or not count.share else f"{count.share:.2g}"
