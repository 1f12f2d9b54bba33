"""What many runs have left, kept in the user's cache: the next report reads one file, not all of theirs.

As in `study/remembered.py` nothing is believed that cannot be seen to be unchanged: what a run has left
counts as long as each of its files is the one that was read. Of 10,000 runs of 200 epochs it takes 180 MB.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from scalestudy.analysis.records import ALIKE, Records, read_all
from scalestudy.study import epochs
from scalestudy.study.remembered import (
    WORTH,
    Identity,
    cache_file,
    dump,
    identity,
    load,
    settled,
    shared,
)

Seen = tuple[tuple[str, Identity | None], ...]
"""Files of a run by their names, with their identities."""
NEW = 0.1
"""Share of the runs that has to be new for the cache to be written again."""


def read_kept(study: Path, folders: Sequence[Path]) -> list[Records]:
    """Read the folders of a study's runs, as `read_all` does; of a large study only what has changed."""
    if len(folders) < WORTH:
        return read_all(folders)
    file = cache_file(study, ".records")
    known = load(file)
    kept: dict[str, tuple[Seen, Records]] = known if isinstance(known, dict) else {}
    seen = {_name(study, folder): _seen(folder) for folder in folders}
    found = {name: kept[name][1] for name, files in seen.items() if name in kept and kept[name][0] == files}
    new = [folder for folder in folders if _name(study, folder) not in found]
    found |= {_name(study, folder): each for folder, each in zip(new, read_all(new), strict=True)}
    read = [found[name] for name in seen]
    if len(new) > NEW * len(folders):
        shared((rank for each in read for rank in each.ranks), *ALIKE)
        dump(file, {name: (files, found[name]) for name, files in seen.items() if _settled(files)})
    return read


def _name(study: Path, folder: Path) -> str:
    return str(folder).removeprefix(f"{study}/")


def _settled(files: Seen) -> bool:
    return all(settled(one) for _, one in files if one is not None)


def _seen(folder: Path) -> Seen:
    ranks = f"{folder}/ranks"
    try:
        names = sorted(os.listdir(ranks))
    except OSError:
        names = []
    files = [epochs.FILE, "gallery.json", *(f"ranks/{name}" for name in names)]
    return tuple((name, identity(f"{folder}/{name}")) for name in files)
