"""A prepared folder is opened completely or refused by name."""

import json
import os
import shutil

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


def test_groups_are_given_one_a_sample(folder):
    file = folder / "meta.json"
    meta = json.loads(file.read_text())
    file.write_text(json.dumps({**meta, "groups": ["a", "a", "b", "b"]}))
    assert Prepared.open(folder).groups == ("a", "a", "b", "b")
    file.write_text(json.dumps({**meta, "groups": ["a"]}))
    assert "1 groups for 4 samples" in refusal(folder)


@pytest.mark.parametrize("name", ["meta.json", "inputs.npy", "targets.npy"])
def test_a_missing_or_truncated_file_is_refused(folder, name):
    size = (folder / name).stat().st_size
    os.truncate(folder / name, size - 3)
    refusal(folder)
    (folder / name).unlink()
    assert name in refusal(folder)


def test_a_folder_of_another_version_is_refused(folder):
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "schema_version": 99}))
    assert "99" in refusal(folder)


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
