"""Any layout, told by patterns under [data]: `images = "scans/**/*_raw.png"`, `masks = "drawn/**/*.png"`."""

from collections.abc import Callable, Iterator
from pathlib import Path

from scalestudy.data.files_in import is_image_name, is_system
from scalestudy.data.layouts.base import Item, Layout, Listed, Scan
from scalestudy.data.layouts.matching import matched
from scalestudy.data.masks import MaskFile
from scalestudy.errors import UserError


def _list(scan: Scan) -> Listed:
    images, masks = (_files(scan, key) for key in ("images", "masks"))
    both = sorted(set(images) & set(masks))
    if both:
        raise UserError(
            "patterns that tell images and masks apart",
            f"{both[0]}, which both of `images` and `masks` match",
            "Make the patterns narrower.",
        )
    pairs, how = matched(images, masks, _names(images, masks, scan.root.path))
    items = [Item(image, MaskFile(mask)) for image, mask in pairs]
    return Listed(items, f"images {scan.data.images} and masks {scan.data.masks}, paired {how}")


def _names(images: list[Path], masks: list[Path], root: Path) -> Callable[[Path], str]:
    """What pairs are told by: the names of files, with their folders where several have one name."""
    if all(len({file.stem for file in files}) == len(files) for files in (images, masks)):
        return lambda file: file.stem
    return lambda file: file.relative_to(root).with_suffix("").as_posix()


def _files(scan: Scan, key: str) -> list[Path]:
    pattern: str | None = getattr(scan.data, key)
    if pattern is None:
        raise UserError(
            "`images` and `masks` together under [data]", f"no `{key}`", f'Add {key} = "PATTERN".'
        )
    try:
        files = sorted(_visible(scan.root.path, pattern))
    except (ValueError, NotImplementedError) as error:
        raise UserError(
            f'a pattern of files in the source for {key}, such as "scans/*.png"',
            f"{pattern!r}: {error}",
            "Correct the pattern: * stands for any name, ** for any folders.",
        ) from None
    if not files:
        raise UserError(
            f"images that {key} = {pattern!r} matches",
            f"none in {scan.root.path}",
            "Correct the pattern: it is seen from the source; * stands for any name, ** for any folders.",
        )
    return files


def _visible(root: Path, pattern: str) -> Iterator[Path]:
    for file in root.glob(pattern):
        hidden = any(is_system(Path(part)) for part in file.relative_to(root).parts)
        if not hidden and is_image_name(file.name) and file.is_file():
            yield file


LAYOUT = Layout(
    name="patterns",
    words="images and masks where patterns say",
    recognise=lambda *_: False,
    list=_list,
    whole=True,
)
