"""A prepared folder is opened whole, or refused by name."""

import json
import os
import shutil
from hashlib import sha256

import numpy as np
import pytest

from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError


@pytest.fixture
def folder(mask_folder, ready):
    return ready(mask_folder()).path


def refusal(folder):
    with pytest.raises(UserError) as refused:
        Prepared.open(folder)
    assert str(folder) in refused.value.received
    assert "Delete that folder" in refused.value.action
    return refused.value.received


def test_opening_gives_what_prepare_gave(mask_folder, ready):
    prepared = ready(mask_folder())
    assert Prepared.open(str(prepared.path)) == prepared


def test_a_manifest_without_groups_has_none_and_one_with_them_gives_them(folder):
    file = folder / "meta.json"
    meta = json.loads(file.read_text())
    del meta["groups"]
    file.write_text(json.dumps(meta))
    assert Prepared.open(folder).groups is None
    file.write_text(json.dumps({**meta, "groups": ["a", "a", "b", "b"]}))
    assert Prepared.open(folder).groups == ("a", "a", "b", "b")
    file.write_text(json.dumps({**meta, "groups": ["a"]}))
    assert "1 groups for 4 samples" in refusal(folder)


def test_a_missing_folder_is_refused(tmp_path):
    assert "No such file" in refusal(tmp_path / "none")


@pytest.mark.parametrize("name", ["meta.json", "inputs.npy", "targets.npy"])
def test_a_missing_or_truncated_file_is_refused(folder, name):
    size = (folder / name).stat().st_size
    os.truncate(folder / name, size - 3)
    refusal(folder)
    (folder / name).unlink()
    assert name in refusal(folder)


def test_arrays_of_another_set_are_refused(folder):
    np.save(folder / "targets.npy", np.zeros((3, 6, 8), np.uint8))
    assert "[3, 6, 8]" in refusal(folder)


def test_a_folder_of_another_version_is_refused(folder):
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "schema_version": 99}))
    assert "99" in refusal(folder)


def test_the_description_holds_the_checksums_of_the_arrays(folder):
    assert (
        Prepared.open(folder).arrays["targets.npy"]
        == sha256((folder / "targets.npy").read_bytes()).hexdigest()
    )


def test_a_moved_folder_opens_where_it_is(folder, tmp_path):
    moved = shutil.move(folder, tmp_path / "elsewhere")
    assert Prepared.open(moved).inputs.shape == (4, 6, 8, 1)


@pytest.mark.parametrize(
    "change",
    [{"given": []}, {"left_out": 3}, {"left_out": [{}]}, {"names": 7}, {"input_shape": None}, {"count": -1}],
    ids=str,
)
def test_a_manifest_of_other_things_is_refused(folder, change):
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, **change}))
    refusal(folder)


@pytest.mark.parametrize("text", ["[]", "7", "", "\x00", "null"])
def test_a_manifest_that_is_no_table_is_refused(folder, text):
    (folder / "meta.json").write_text(text)
    refusal(folder)
