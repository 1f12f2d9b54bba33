"""Sets are prepared once, in the images' depth, under a key that changes with their inputs."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.store import prepare as module
from scalestudy.util.errors import UserError


def test_a_set_holds_every_image_and_mask_in_order(mask_folder, ready):
    prepared = ready(mask_folder(4))
    assert (prepared.kind, prepared.count, prepared.input_shape) == ("masks", 4, (6, 8, 1))
    assert prepared.inputs.dtype == prepared.targets.dtype == np.uint8
    assert prepared.inputs[:, 0, 0, 0].tolist() == [0, 10, 20, 30]
    assert prepared.targets[2].tolist() == [[1] * 8] * 2 + [[0] * 8] * 4
    assert (prepared.classes, prepared.class_names) == (2, ("background", "foreground"))
    assert prepared.names[1] == "images/s1.png"
    assert (prepared.scale, prepared.ignore, prepared.given) == (1 / 255, None, {})
    assert prepared.bytes == 2 * 4 * 6 * 8


def test_the_second_time_nothing_is_decoded(mask_folder, ready):
    root, done = mask_folder(), []
    first = ready(root, on_progress=lambda *at: done.append(at))
    assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert ready(root, on_progress=pytest.fail) == first


def test_a_set_is_found_once_it_was_prepared_and_never_made_by_looking(mask_folder, ready, tmp_path):
    root, cache = mask_folder(), tmp_path / "cache"
    assert module.find_prepared(data_of(root, cache=cache)) is None
    assert not cache.exists()
    assert module.find_prepared(data_of(root, cache=cache), task_kind="masks") is None
    made = ready(root)
    assert module.find_prepared(data_of(root, cache=cache), task_kind="masks") == made
    assert module.find_prepared(data_of(root, cache=cache, image_size=(12, 16))) is None


def test_a_changed_file_makes_a_new_set(mask_folder, ready, save):
    root = mask_folder()
    first = ready(root)
    save(root / "images" / "s0.png", np.full((6, 8), 77, np.uint8))
    second = ready(root)
    assert second.path != first.path
    assert second.fingerprint != first.fingerprint
    assert second.inputs[0, 0, 0, 0] == 77


def test_keys_that_decide_on_the_split_alone_leave_the_set_where_it_is(mask_folder, ready):
    root = mask_folder()
    assert ready(root, validation=0.5, folds=3, fold=1).path == ready(root).path


def test_a_refused_set_leaves_nothing_half_written(mask_folder, ready, tmp_path):
    root = mask_folder()
    file = root / "images" / "s3.png"
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(UserError, match=r"s3\.png"):
        ready(root)
    assert [entry for entry in tmp_path.glob("cache/*") if entry.is_dir()] == []


def test_a_damaged_set_is_made_anew(mask_folder, ready):
    root = mask_folder()
    prepared = ready(root)
    os.truncate(prepared.path / "inputs.npy", 100)
    assert ready(root).inputs[3, 0, 0, 0] == 30


def test_a_wrong_kind_for_the_task_is_refused_before_decoding(class_folder, mask_folder, ready):
    root = class_folder({"a": 2, "b": 2})
    with pytest.raises(UserError, match="images with masks, which the task needs") as refused:
        ready(root, task_kind="masks", on_progress=pytest.fail)
    assert "images/ and masks/" in refused.value.action
    with pytest.raises(UserError, match="one class each, which the task needs"):
        ready(mask_folder(), task_kind="classes")


def test_paths_are_seen_from_the_study_file_and_variables_filled_in(mask_folder, ready, monkeypatch):
    root = mask_folder()
    by_path = ready(root)
    assert ready("set", base=root.parent) == by_path
    monkeypatch.setenv("SETS", str(root.parent))
    assert ready("$SETS/set") == ready("${SETS}/set") == by_path
    monkeypatch.setenv("HOME", str(root.parent))
    assert ready("~/set") == by_path
    assert ready(root, cache="cache", base=root.parent).path == by_path.path


def test_a_full_disk_is_refused_before_writing(mask_folder, ready, monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 5))
    with pytest.raises(UserError, match="free disk space"):
        ready(mask_folder(), storage="arrays")
    assert [entry for entry in tmp_path.glob("cache/*") if entry.is_dir()] == []


def test_a_cache_that_cannot_be_made_is_refused(mask_folder, ready, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="can be written to"):
        ready(mask_folder(), cache=tmp_path / "file" / "cache")


def test_two_that_start_together_decode_once(mask_folder, ready):
    root, done = mask_folder(12), []
    with ThreadPoolExecutor(2) as threads:
        made = list(threads.map(lambda _: ready(root, on_progress=lambda *at: done.append(at)), range(2)))
    assert made[0] == made[1]
    assert done == [(number, 12) for number in range(1, 13)]


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("source", "size", "found"),
    [
        ("nuclei", None, (334, (256, 256, 1), 2)),
        ("superalloy", None, (18, (512, 512, 1), 3)),
        ("flowers", (48, 64), (300, (48, 64, 3), 5)),
    ],
)
def test_real_sets(real_data, ready, source, size, found):
    prepared = ready(source, base=real_data, image_size=size)
    assert (prepared.count, prepared.input_shape, prepared.classes) == found


def test_how_images_are_fitted_is_part_of_what_a_set_is(mask_folder, ready):
    root = mask_folder(2)
    sets = [ready(root, image_size=(6, 4), fit=fit) for fit in ("pad", "crop", "stretch")]
    assert len({each.path for each in sets}) == 3
    assert [each.ignore for each in sets] == [255, None, None]
    assert [int(each.targets[0].min()) for each in sets] == [0, 0, 0]
    assert [255 in each.targets[0] for each in sets] == [True, False, False]
    assert ready(root, image_size=(6, 4)).path == sets[0].path
