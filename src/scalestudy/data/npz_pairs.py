"""Which arrays of an .npz file belong together, by their names."""

from pathlib import Path

from scalestudy.data.files_in import several
from scalestudy.data.left_out import MOST_NAMES, LeftOut
from scalestudy.data.npz_arrays import NpzArray, member_names
from scalestudy.errors import UserError

_SPLITS = {"train": ("train",), "validation": ("val", "valid", "validation"), "test": ("test",)}
_LAYOUT = "arrays x_train and y_train, optionally x_val, y_val, x_test and y_test"


def find_arrays(path: Path) -> tuple[dict[str, tuple[NpzArray, NpzArray]], tuple[LeftOut, ...]]:
    """Inputs and targets by split ("train" first), and what else is in the file.

    Raises:
        UserError: it is no .npz file, has no training set, or one array of two; or as `NpzArray`.
    """
    members = member_names(path)
    pairs = _pairs(path, [name.removesuffix(".npy") for name in members if name.endswith(".npy")])
    return pairs, _left_out(members, pairs)


def _left_out(members: list[str], pairs: dict[str, tuple[NpzArray, NpzArray]]) -> tuple[LeftOut, ...]:
    taken = {f"{array.name}.npy" for pair in pairs.values() for array in pair}
    others = tuple(name.removesuffix(".npy") for name in members if name not in taken)
    return (LeftOut("no arrays of a set", len(others), others[:MOST_NAMES]),) if others else ()


def _pairs(path: Path, names: list[str]) -> dict[str, tuple[NpzArray, NpzArray]]:
    pairs = {}
    for split, suffixes in _SPLITS.items():
        for suffix in suffixes:
            found = [name for name in (f"x_{suffix}", f"y_{suffix}") if name in names]
            if len(found) == 1:
                raise UserError(
                    f"x_{suffix} and y_{suffix} together",
                    f"only {found[0]} in {path}",
                    "Save both arrays under these names.",
                )
            if found and split not in pairs:
                pairs[split] = (NpzArray(path, found[0]), NpzArray(path, found[1]))
    if "train" not in pairs:
        found_names = several(names) or "no arrays"
        raise UserError(_LAYOUT, f"{found_names} in {path}", "Save the arrays under these names.")
    return pairs
