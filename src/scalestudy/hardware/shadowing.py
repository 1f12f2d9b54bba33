"""Remove libraries of loaded CUDA modules from LD_LIBRARY_PATH, where they shadow those of the packages.

The wheels find their libraries by a run path (DT_RUNPATH), but the loader searches LD_LIBRARY_PATH first
(ld.so(8)). Another cuDNN or NCCL than the pinned one would then be used, or fail to load.
"""

import functools
import importlib.util
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

VARIABLE = "LD_LIBRARY_PATH"
DRIVER = "libcuda.so.1"
"""The driver's library, which no package contains; it may be in any folder of a cluster or container."""


class LibraryPath(NamedTuple):
    """LD_LIBRARY_PATH for a process of the framework ("" to unset it), without the dropped folders."""

    value: str
    dropped: list[str]

    def applied(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return all variables of a process, from those of its parent."""
        kept = {name: value for name, value in variables.items() if name != VARIABLE}
        return kept | ({VARIABLE: self.value} if self.value else {})


@functools.cache
def package_libraries() -> dict[str, str]:
    """Return the folders of the libraries in NVIDIA's packages of this Python, by file name."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations or () if spec else ()
    files = (file for folder in folders for file in sorted(Path(folder).glob("*/lib/*.so*")))
    return {file.name: str(file.parent) for file in files}


def library_path(
    variables: Mapping[str, str], own: Mapping[str, str] | None = None, in_use: Collection[str] | None = None
) -> LibraryPath:
    """Return LD_LIBRARY_PATH without the folders that shadow a library of the packages.

    A folder from which this process has loaded a library (for example a Spack view with Python's libraries),
    or that holds the driver's library, is kept behind those of the packages. `own` are the folders of
    libraries in packages, by file name; by default, those installed. `in_use` are the folders of libraries
    that this process has loaded; by default, those listed by the kernel.
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
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return set()
    return {os.path.dirname(os.path.realpath(line[line.index("/") :])) for line in lines if "/" in line}
