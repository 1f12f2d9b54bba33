"""CUDA modules that are loaded at run time, whose libraries would be taken instead of the packages' own.

The wheels find theirs by a run path (DT_RUNPATH), and the loader looks into LD_LIBRARY_PATH before it
(ld.so(8)). Another cuDNN or NCCL than the pinned one then computes, or does not load.
"""

import functools
import importlib.util
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

VARIABLE = "LD_LIBRARY_PATH"
DRIVER = "libcuda.so.1"
"""No package brings it: clusters and containers keep it wherever the driver is."""


class LibraryPath(NamedTuple):
    """LD_LIBRARY_PATH for a process of the framework ("" to unset it), without the dropped folders."""

    value: str
    dropped: list[str]

    def applied(self, variables: Mapping[str, str]) -> dict[str, str]:
        """All variables of a process, from those of its parent."""
        kept = {name: value for name, value in variables.items() if name != VARIABLE}
        return kept | ({VARIABLE: self.value} if self.value else {})


@functools.cache
def package_libraries() -> dict[str, str]:
    """Folders of the libraries that NVIDIA's packages in this Python bring, by the library's file name."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations or () if spec else ()
    files = (file for folder in folders for file in sorted(Path(folder).glob("*/lib/*.so*")))
    return {file.name: str(file.parent) for file in files}


def library_path(
    variables: Mapping[str, str], own: Mapping[str, str] | None = None, in_use: Collection[str] | None = None
) -> LibraryPath:
    """LD_LIBRARY_PATH without the folders that hold a library of the packages, too.

    A folder from which this process has loaded a library itself (the whole of a Spack view, Python's own
    included), or that holds the driver's library, stays, behind the packages'. By default `own`, folders of
    the packages' libraries by file name, are those that are installed, and `in_use`, folders that this
    process has libraries from, what the kernel says.
    """
    own = package_libraries() if own is None else own
    parts = [part for part in variables.get(VARIABLE, "").split(os.pathsep) if part]
    shadowing = {
        part: [name for name in _held(part, own) if own[name] not in parts[: parts.index(part) + 1]]
        for part in parts
    }
    dropped = [part for part in parts if shadowing[part]]
    if not dropped:
        return LibraryPath(variables.get(VARIABLE, ""), [])
    in_use = _in_use() if in_use is None else in_use
    needed = [part for part in dropped if os.path.realpath(part) in in_use or Path(part, DRIVER).exists()]
    first = dict.fromkeys(own[name] for part in needed for name in shadowing[part])
    kept = [part for part in parts if part not in dropped and part not in first]
    return LibraryPath(os.pathsep.join([*kept, *first, *needed]), dropped)


def _held(folder: str, names: Collection[str]) -> list[str]:
    try:
        return sorted(set(os.listdir(folder)) & set(names))
    except OSError:
        return []


def _in_use() -> set[str]:
    """Real paths of the folders that this process has mapped files from (Linux)."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return set()
    return {os.path.dirname(os.path.realpath(line[line.index("/") :])) for line in lines if "/" in line}
