"""Symbols that a shared library needs and nothing exports; `python symbols.py LIBRARY` ends with 1 for any.

A library that lacks one does not load, or ends its process at the first use of it. Nothing is loaded here, so
that a build is held to it on a machine without a GPU. Read as the generic ABI says:
https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html. Imports nothing but the standard library: the
recipe of a build starts it by its path.
"""

import functools
import importlib.util
import mmap
import os
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SECTIONS = {"symbols": 11, "dynamic": 6}
"""Types of sections: SHT_DYNSYM, SHT_DYNAMIC."""
NEEDED, RPATH, RUNPATH = 1, 15, 29
UNDEFINED, WEAK, NAMED = 0, 2, (1, 2, 10)
"""Section of what is defined elsewhere; the binding that may stay unresolved; bindings that others see."""
SYSTEM = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", f"/lib/{os.uname().machine}-linux-gnu",
          f"/usr/lib/{os.uname().machine}-linux-gnu")  # fmt: skip


@dataclass(frozen=True)
class SharedLibrary:
    """What a shared library says of itself.

    Attributes:
        needs: Names of the libraries that it is linked to.
        run_path: Folders in which they are looked for, $ORIGIN being its own.
        undefined: Symbols that it needs; not those that may be missing.
        exported: Symbols that it has for others.
    """

    needs: tuple[str, ...]
    run_path: tuple[str, ...]
    undefined: frozenset[bytes]
    exported: frozenset[bytes]


@dataclass(frozen=True)
class Gaps:
    """What a library lacks.

    Attributes:
        libraries: Those that it, or one of them, is linked to and that are nowhere.
        symbols: Those that it needs and none of the others exports.
    """

    libraries: tuple[str, ...]
    symbols: tuple[str, ...]


@functools.cache
def read(file: Path) -> SharedLibrary:
    """A shared library of 64 bits, in the order of bytes of this machine.

    Raises:
        ValueError: It is none.
        OSError: It cannot be read.
    """
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:5] != b"\x7fELF\x02":
            raise ValueError(f"{file} is no shared library of 64 bits")
        return _read(data)


def _read(data: mmap.mmap) -> SharedLibrary:
    (start,) = struct.unpack_from("Q", data, 40)
    size, count = struct.unpack_from("HH", data, 58)
    headers = [struct.unpack_from("IIQQQQII", data, start + size * index) for index in range(count)]

    def content(header: Sequence[int]) -> bytes:
        return data[header[4] : header[4] + header[5]]

    def tables(kind: str) -> Iterator[tuple[bytes, bytes]]:  # each with the names that it refers to
        for header in headers:
            if header[1] == SECTIONS[kind]:
                yield content(header), content(headers[header[6]])

    def name(names: bytes, place: int) -> bytes:
        return names[place : names.index(b"\0", place)]

    needs, folders = [], []
    for table, names in tables("dynamic"):
        for tag, value in struct.iter_unpack("qQ", table):
            if tag == NEEDED:
                needs.append(os.fsdecode(name(names, value)))
            elif tag in (RPATH, RUNPATH):
                folders += os.fsdecode(name(names, value)).split(":")
    undefined, exported = set(), set()
    for table, names in tables("symbols"):
        for place, info, _, section, _, _ in struct.iter_unpack("IBBHQQ", table):
            if section != UNDEFINED and info >> 4 in NAMED:
                exported.add(name(names, place))
            elif section == UNDEFINED and place and info >> 4 != WEAK:
                undefined.add(name(names, place))
    run_path = tuple(dict.fromkeys(folders))
    return SharedLibrary(tuple(needs), run_path, frozenset(undefined), frozenset(exported))


def gaps(file: Path, *, more: Sequence[Path] = (), variables: Mapping[str, str] | None = None) -> Gaps:
    """What a library lacks, looked for where the loader looks.

    Args:
        file: The library.
        more: Folders of libraries that are loaded before it: a name is looked for there, too.
        variables: With LD_LIBRARY_PATH; those of this process by default.

    Raises:
        ValueError: It, or one that it is linked to, is no shared library.
        OSError: One cannot be read.
    """
    path = (os.environ if variables is None else variables).get("LD_LIBRARY_PATH", "")
    named = [folder for folder in path.split(":") if folder]
    first = read(file)
    lacking, missing = set(first.undefined), []
    seen, open_ends = set(), [(file, first)]
    while open_ends:
        place, library = open_ends.pop()
        own = [folder.replace("$ORIGIN", str(place.parent)) for folder in library.run_path]
        for name in library.needs:
            if name in seen:
                continue
            seen.add(name)
            folders: list[str | Path] = [*named, *own, *more, *SYSTEM]
            candidates = (Path(folder, name) for folder in folders)
            found = next((each for each in candidates if each.exists()), None)
            if found is None:
                missing.append(name)
                continue
            linked = read(found)
            lacking -= linked.exported
            open_ends.append((found, linked))
    return Gaps(tuple(sorted(missing)), tuple(sorted(os.fsdecode(each) for each in lacking)))


def package_folders(*names: str) -> list[Path]:
    """Folders of these packages, as this Python would import them; nothing is imported."""
    specs = [importlib.util.find_spec(name) for name in names]
    return [Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]


def main(arguments: Sequence[str]) -> int:
    """Say what each library lacks, beside TensorFlow."""
    code = 0
    for argument in arguments:
        found = gaps(Path(argument), more=package_folders("tensorflow"))
        for kind, names in (("libraries", found.libraries), ("symbols", found.symbols)):
            if names:
                code = 1
                print(f"expected all {kind} that {argument} needs; received none of {', '.join(names)}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
