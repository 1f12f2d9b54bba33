"""Parallel decoding keeps the order, reads a few items ahead, and stops at the first error."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.config.settings import DataSettings
from scalestudy.data.sources import named_source
from scalestudy.data.sources.locate import find_source
from scalestudy.data.sources.source import digest, side_by_side
from scalestudy.util.errors import UserError


def test_only_a_few_items_are_taken_ahead():
    taken = []
    results = side_by_side(
        lambda item: item, (taken.append(item) or item for item in range(1000))
    )
    assert next(results) == 0
    assert len(taken) < 20
    results.close()


def test_digests_tell_parts_apart():
    assert (
        len(
            {
                digest("ab", "c"),
                digest("a", "bc"),
                digest("abc"),
                digest("ab", "c", None),
            }
        )
        == 4
    )


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("indents", "indents"),
        ("indents:40", "indents"),
        ("digits", "digits"),
        ("./indents", None),
        ("digits.npz", None),
        ("digits:3", "digits"),
        ("data/nuclei", None),
    ],
)
def test_names_of_sources(source, made):
    assert named_source(source) == made


def test_asking_imports_no_numpy_and_no_sklearn():
    program = "import scalestudy.data.sources; sys.exit(bool({'numpy', 'sklearn'} & sys.modules.keys()))"
    path = f"import sys; sys.path[:0] = {sys.path!r}; "
    assert (
        subprocess.run([sys.executable, "-c", path + program], check=False).returncode
        == 0
    )


def test_the_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    from scalestudy.data.sources.arrays import Digits

    theirs, ours = load_digits(), list(Digits(None, DataSettings()).rows())
    assert all(
        (image[..., 0] == other).all()
        for (image, _), other in zip(ours, theirs.images, strict=True)
    )
    assert [target for _, target in ours] == theirs.target.tolist()


def refusal(source, **keys):
    with pytest.raises(UserError) as refused:
        find_source(data_of(source, **keys), base=Path())
    return refused.value


@pytest.mark.parametrize(
    "keys",
    [
        {"value_range": (0, 4095)},
        {"group_pattern": "^p"},
        {"colours": {"a": "#000000"}},
    ],
)
def test_arrays_and_made_images_have_no_files(tmp_path, keys):
    arrays = tmp_path / "a.npz"
    np.savez(arrays, x_train=np.zeros((4, 2, 2), np.uint16), y_train=np.arange(4) % 2)
    for source in (arrays, "digits", "indents:4"):
        assert refusal(source, **keys).received == f"`{next(iter(keys))}`"
