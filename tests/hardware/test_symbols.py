"""Symbols that a built library lacks: the really built Horovod, and copies of it with a planted fault."""

import sys
from pathlib import Path

import numpy as np
import pytest

from scalestudy.engines.tensorflow.horovod_build import library_file as horovod_library
from scalestudy.hardware import symbols

TENSORFLOW = "libtensorflow_framework.so.2"


@pytest.fixture
def library():
    found = horovod_library()
    if found is None:
        pytest.skip("Horovod is not built")
    return found


def lacking(library: Path) -> symbols.Gaps:
    return symbols.gaps(library, more=symbols.package_folders("tensorflow"))


def planted(library: Path, tmp_path: Path, old: bytes) -> Path:
    """A copy that refers to something of another name."""
    copy = tmp_path / library.name
    whole = library.read_bytes()
    assert whole.count(b"\0" + old + b"\0") == 1
    copy.write_bytes(whole.replace(b"\0" + old + b"\0", b"\0" + old[:-1] + b"?\0"))
    return copy


def test_the_horovod_that_was_built_here_lacks_nothing(library):
    assert TENSORFLOW in symbols.read(library).needs
    assert lacking(library) == symbols.Gaps((), ())


def test_a_symbol_that_nothing_exports_is_named_and_ends_the_check_of_a_build(library, tmp_path, capsys):
    needed = min(name for name in symbols.read(library).undefined if b"OpKernelContext" in name)
    copy = planted(library, tmp_path, needed)
    missing = needed[:-1].decode() + "?"
    assert lacking(copy).symbols == (missing,)
    assert symbols.main([str(library), str(copy)]) == 1
    assert capsys.readouterr().out == f"expected all symbols that {copy} needs; received none of {missing}\n"


def test_a_library_that_is_nowhere_is_named_with_what_it_would_have_brought(library, tmp_path):
    copy = planted(library, tmp_path, TENSORFLOW.encode())
    assert lacking(copy).libraries == (TENSORFLOW[:-1] + "?",)


def test_a_run_path_is_followed_from_where_the_library_lies():
    module = Path(sys.modules[np.ndarray.__module__ + "._core._multiarray_umath"].__file__)
    found = symbols.read(module)
    assert any("$ORIGIN" in folder for folder in found.run_path)
    gaps = symbols.gaps(module, variables={})
    assert gaps.libraries == ()
    assert all(name.startswith(("Py", "_Py")) for name in gaps.symbols), gaps.symbols  # the program's own


def test_what_is_no_library_is_refused(tmp_path):
    text = tmp_path / "lib.so"
    text.write_text("GROUP ( libc.so.6 )")
    with pytest.raises(ValueError, match="no shared library of 64 bits"):
        symbols.read(text)
