"""Images with a mask each, paired by the names of their files.

They lie side by side (`images/` and `masks/`), in folders of splits (`images/train/` and `masks/train/`,
`train_images/` and `train_masks/`), in one folder (`a.png` with `a_mask.png`), or where patterns say.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from scalestudy.data.images.masks import MaskFile
from scalestudy.data.sources.files import image_files, is_image_name, is_system, several
from scalestudy.data.sources.layouts.base import Item, Layout, Listed, Look, Scan, numbers
from scalestudy.data.sources.layouts.names import leave_others, named, role, stripped
from scalestudy.util.errors import UserError

Key = Callable[[str], object]
_WAYS: tuple[tuple[str, Key], ...] = (
    ("by name", lambda name: name),
    ("by their names without capitals", str.lower),
    (
        "by what is left of their names without words like image and mask",
        lambda name: stripped(name)[0].lower(),
    ),
    ("by the numbers in their names", numbers),
)


def matched(
    images: Sequence[Path], masks: Sequence[Path], name_of: Callable[[Path], str] = lambda file: file.stem
) -> tuple[list[tuple[Path, Path]], str]:
    """Each image with its mask, in the images' order, and how they were told to belong together.

    Names decide where they agree; else names without capitals; else what is left of them without words such
    as "image" and "mask"; else the numbers in them, if each folder numbers its files in one way. The way that
    matches most is taken.

    Raises:
        UserError: An image without a mask or a mask without an image (names up to 5), or two of one name.
    """
    of_image, of_mask = _by(name_of, images), _by(name_of, masks)
    words, key = max(_WAYS, key=lambda way: _matches(of_image, of_mask, way[1]))
    mask_of = {key(name): file for name, file in of_mask.items()}
    wanted = {key(name): file for name, file in of_image.items()}
    alone = [file for name, file in wanted.items() if name not in mask_of]
    alone += [file for name, file in mask_of.items() if name not in wanted]
    if alone:
        raise UserError(
            "a mask of the same name for every image, and an image for every mask",
            f"{several([str(file) for file in alone])} without the other of the pair",
            "Add what is missing, or rename the files so that they pair (the extension may differ).",
        )
    pairs = [(file, mask_of[name]) for name, file in wanted.items()]
    example = "" if (words, key) == _WAYS[0] else f" ({pairs[0][0].name} with {pairs[0][1].name})"
    return pairs, f"{words}{example}"


def _matches(images: Iterable[str], masks: Iterable[str], key: Key) -> int:
    """How many images match a mask this way; -1 where it does not tell the files of one folder apart."""
    if not (_tells(list(images), key) and _tells(list(masks), key)):
        return -1
    return len(set(map(key, images)) & set(map(key, masks)))


def _tells(names: Sequence[str], key: Key) -> bool:
    keys = set(map(key, names))
    if len(keys) < len(names):
        return False
    # Numbers alone identify files only where all are named alike: `a1` and `b2` are not of one series.
    return key is not numbers or (len({re.sub(r"\d+", "#", name) for name in names}) == 1 and () not in keys)


def _by(name_of: Callable[[Path], str], files: Sequence[Path]) -> dict[str, Path]:
    file_of: dict[str, Path] = {}
    for file in files:
        name = name_of(file)
        if name in file_of:
            raise UserError(
                "one file for each name",
                f"{file_of[name]} and {file.name}",
                "Rename or remove one of the two.",
            )
        file_of[name] = file
    return file_of


USUAL = ("images", "masks")


def couple(folder: Look) -> tuple[Path, Path] | None:
    """The folders of images and of masks inside `folder`, if it has both.

    Raises:
        UserError: there are two for one of them.
    """
    if {name.lower() for name in folder.folders} >= set(USUAL):
        both = [named(folder.path, (name,), f"the {name}") for name in USUAL]
        return (both[0], both[1]) if both[0] and both[1] else None
    folders: dict[str, list[Path]] = {"image": [], "mask": []}
    for name, inner in folder.folders.items():
        what, split = role(name)
        if what and split is None and inner.images:
            folders[what].append(inner.path)
    if not all(folders.values()):
        return None
    for what, paths in folders.items():
        if len(paths) > 1:
            raise UserError(
                f"one folder for the {what}s",
                f"{' and '.join(f'{path.name}/' for path in paths)} in {folder.path}",
                'Say which: `images = "FOLDER/*"` and `masks = "FOLDER/*"` under [data].',
            )
    return folders["image"][0], folders["mask"][0]


def paired(images: Path, masks: Path, split: str, scan: Scan) -> tuple[list[Item], str]:
    """The samples of two folders, and how they were paired."""
    pairs, how = matched(image_files(images, scan.left), image_files(masks, scan.left))
    return [Item(image, MaskFile(mask), split) for image, mask in pairs], how


def _list_pairs(scan: Scan) -> Listed:
    items: list[Item] = []
    sentences: list[str] = []
    for split, folder in scan.parts.items():
        both = couple(folder)
        assert both is not None
        leave_others(folder.path, both, scan.left)
        pairs, how = paired(*both, split, scan)
        items += pairs
        sentences.append(f"{both[0].name}/ and {both[1].name}/, paired {how}")
    return Listed(items, sentences[0])


PAIRS = Layout(
    name="pairs",
    words="images/ and masks/ whose files pair by name",
    recognise=lambda folder, _: couple(folder) is not None,
    list=_list_pairs,
)


_Couples = dict[str, tuple[Look, Look]]


def _couples(root: Look) -> _Couples:
    """Folders of images and masks by split, "train" among them; empty where there are none."""
    folders: dict[str, dict[str, Look]] = {}
    for name, folder in root.folders.items():
        what, split = role(name)
        if split is not None and folder.images:
            _take(folders.setdefault(split, {}), what or "image", folder)
        elif what is not None and not folder.images:
            for inner, subfolder in folder.folders.items():
                inner_what, inner_split = role(inner)
                if inner_split is not None and inner_what in (None, what):
                    _take(folders.setdefault(inner_split, {}), what, subfolder)
    couples = {split: (both["image"], both["mask"]) for split, both in folders.items() if len(both) == 2}
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


def _list_split_pairs(scan: Scan) -> Listed:
    items: list[Item] = []
    understood = ""
    couples = _couples(scan.root)
    taken = {folder.path for both in couples.values() for folder in both}
    above = {path.parent for path in taken} - {scan.root.path}
    leave_others(scan.root.path, taken | above, scan.left)
    for folder in sorted(above):
        leave_others(folder, taken, scan.left)
    for split, (images, masks) in couples.items():
        pairs, how = paired(images.path, masks.path, split, scan)
        items += pairs
        names = [folder.path.relative_to(scan.root.path).as_posix() for folder in (images, masks)]
        understood = understood or f"{names[0]}/ and {names[1]}/ (likewise other splits), paired {how}"
    return Listed(items, understood)


SPLIT_PAIRS = Layout(
    name="split-pairs",
    words="images/train/ and masks/train/, or train_images/ and train_masks/, and so on",
    recognise=lambda root, _: bool(_couples(root)),
    list=_list_split_pairs,
    whole=True,
)


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


def _recognise_suffixes(folder: Look) -> bool:
    """Pairs in the folder itself, or in each folder inside it."""
    if folder.images:
        return _holds_both(folder)
    return bool(folder.folders) and all(_holds_both(item) for item in folder.folders.values())


def _list_suffixes(scan: Scan) -> Listed:
    items: list[Item] = []
    for split, part in scan.parts.items():
        nested = not part.images
        if nested:
            leave_others(part.path, [item.path for item in part.folders.values()], scan.left)
        for folder in part.folders.values() if nested else [part]:
            files = image_files(folder.path, scan.left)
            masks = [file for file in files if _is_mask(file.name)]
            others = set(masks)
            pairs, _ = matched([file for file in files if file not in others], masks)
            group = folder.path.name if nested else None
            items += [Item(image, MaskFile(mask), split, group) for image, mask in pairs]
            example = (pairs[0][0].name, pairs[0][1].name)
    understood = f"images and masks in one folder, as {example[0]} with {example[1]}"
    return Listed(items, understood + ("; each folder is a group" if items[0].group else ""))


SUFFIXES = Layout(
    name="suffixes",
    words="images and masks in one folder, as a.png with a_mask.png",
    recognise=lambda folder, _: _recognise_suffixes(folder),
    list=_list_suffixes,
)


def _list_patterns(scan: Scan) -> Listed:
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


PATTERNS = Layout(
    name="patterns",
    words="images and masks where patterns say",
    recognise=lambda *_: False,
    list=_list_patterns,
    whole=True,
)
