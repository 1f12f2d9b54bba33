"""Sets are prepared once, in the images' depth, under a key that changes with their inputs."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data import preparation
from scalestudy.data.preparation import find_prepared, write_set
from scalestudy.data.sources.source import Contents
from scalestudy.data.split import ensure_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError


def test_a_set_holds_every_image_and_mask_in_order(mask_folder, ready):
    prepared = ready(mask_folder(4))
    assert (prepared.kind, prepared.count, prepared.input_shape) == (
        "masks",
        4,
        (6, 8, 1),
    )
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


def test_a_set_is_found_once_it_was_prepared_and_never_made_by_looking(
    mask_folder, ready, tmp_path
):
    root, cache = mask_folder(), tmp_path / "cache"
    assert find_prepared(data_of(root, cache=cache)) is None
    assert not cache.exists()
    assert find_prepared(data_of(root, cache=cache), task_kind="masks") is None
    made = ready(root)
    assert find_prepared(data_of(root, cache=cache), task_kind="masks") == made
    assert find_prepared(data_of(root, cache=cache, image_size=(12, 16))) is None


def test_a_changed_file_makes_a_new_set(mask_folder, ready, save):
    root = mask_folder()
    first = ready(root)
    save(root / "images" / "s0.png", np.full((6, 8), 77, np.uint8))
    second = ready(root)
    assert second.path != first.path
    assert second.fingerprint != first.fingerprint
    assert second.inputs[0, 0, 0, 0] == 77


def test_keys_that_decide_on_the_split_alone_leave_the_set_where_it_is(
    mask_folder, ready
):
    root = mask_folder()
    assert ready(root, validation=0.5).path == ready(root).path


def test_a_refused_set_leaves_nothing_half_written(mask_folder, refusal, tmp_path):
    root = mask_folder()
    file = root / "images" / "s3.png"
    file.write_bytes(file.read_bytes()[:50])
    assert "s3.png" in refusal(root).received
    assert folders_in(tmp_path / "cache") == []


def test_a_damaged_set_is_made_anew(mask_folder, ready):
    root = mask_folder()
    prepared = ready(root)
    os.truncate(prepared.path / "inputs.npy", 100)
    assert ready(root).inputs[3, 0, 0, 0] == 30


def test_a_wrong_kind_for_the_task_is_refused_before_decoding(
    class_folder, mask_folder, refusal
):
    error = refusal(
        class_folder({"a": 2, "b": 2}), task_kind="masks", on_progress=pytest.fail
    )
    assert error.expected == "images with masks, which the task needs"
    assert "images/ and masks/" in error.action
    error = refusal(mask_folder(), task_kind="classes", on_progress=pytest.fail)
    assert error.expected == "images with one class each, which the task needs"


def test_paths_are_seen_from_the_study_file_and_variables_filled_in(
    mask_folder, ready, monkeypatch
):
    root = mask_folder()
    by_path = ready(root)
    assert ready("set", base=root.parent) == by_path
    monkeypatch.setenv("SETS", str(root.parent))
    assert ready("$SETS/set") == ready("${SETS}/set") == by_path
    monkeypatch.setenv("HOME", str(root.parent))
    assert ready("~/set") == by_path
    assert ready(root, cache="cache", base=root.parent).path == by_path.path


def test_a_full_disk_refuses_a_new_set_before_writing_and_not_one_that_is_prepared(
    mask_folder, ready, refusal, monkeypatch, tmp_path
):
    first = ready("indents:2", image_size=(32, 48))
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 5)
    )
    assert ready("indents:2", image_size=(32, 48)) == first
    for source in ("indents:3", mask_folder()):
        assert "free disk space" in refusal(source, image_size=(32, 48)).expected
    assert folders_in(tmp_path / "cache") == [first.path.name]


def test_a_cache_that_cannot_be_made_is_refused(mask_folder, refusal, tmp_path):
    (tmp_path / "file").write_text("")
    assert (
        "can be written to"
        in refusal(mask_folder(), cache=tmp_path / "file" / "cache").expected
    )


def test_two_that_start_together_decode_once(mask_folder, ready):
    root, done = mask_folder(12), []
    with ThreadPoolExecutor(2) as threads:
        made = list(
            threads.map(
                lambda _: ready(root, on_progress=lambda *at: done.append(at)), range(2)
            )
        )
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
    sets = [
        ready(root, image_size=(6, 4), fit=fit) for fit in ("pad", "crop", "stretch")
    ]
    assert len({each.path for each in sets}) == 3
    assert [each.ignore for each in sets] == [255, None, None]
    assert [int(each.targets[0].min()) for each in sets] == [0, 0, 0]
    assert [255 in each.targets[0] for each in sets] == [True, False, False]
    assert ready(root, image_size=(6, 4)).path == sets[0].path


PROGRAM = """
import sys
from scalestudy.data.preparation import prepare
from scalestudy.config.settings import DataSettings

def pause(done, total):
    if done == 3:
        print("writing", flush=True)
        sys.stdin.readline()

prepare(DataSettings(source="indents:8", image_size=(48, 64), cache=sys.argv[1]), on_progress=pause)
"""


def started(cache):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(cache)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def folders_in(cache):
    return [entry.name for entry in cache.glob("*") if entry.is_dir()]


def half_made(cache):
    return [name for name in folders_in(cache) if ".tmp-" in name]


def after(done, action):
    """Return an `on_progress` that calls `action` once after `done` samples."""
    return lambda now, _: action() if now == done else None


@pytest.mark.slow
def test_what_a_killed_process_left_is_cleared_by_the_next_that_makes_the_set(
    mask_folder, ready, tmp_path
):
    cache = tmp_path / "cache"
    other = started(cache)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "writing\n"
        ready(mask_folder())
        assert (
            len(half_made(cache)) == 1
        )  # its process is alive, so no other may remove it
    finally:
        other.kill()
        other.communicate()
    assert ready("indents:8", image_size=(48, 64)).count == 8
    assert half_made(cache) == []


def test_a_disk_that_fills_up_leaves_nothing(
    mask_folder, refusal, tmp_path, monkeypatch
):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(preparation.ArrayFile, "finish", full)
    assert f"{tmp_path / 'cache'}: No space left" in refusal(mask_folder()).received
    assert folders_in(tmp_path / "cache") == []


def test_a_cache_that_is_removed_meanwhile_is_told_and_made_again(
    mask_folder, ready, refusal, tmp_path
):
    root, cache = mask_folder(), tmp_path / "cache"
    error = refusal(root, on_progress=after(2, lambda: shutil.rmtree(cache)))
    assert f"{cache}: No such file" in error.received
    assert not cache.exists()
    assert ready(root).count == 4


def test_an_interrupt_leaves_nothing_half_written(mask_folder, ready, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ready(mask_folder(), on_progress=after(2, interrupt))
    assert half_made(tmp_path / "cache") == []


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (
            lambda pair: [
                shutil.copy(file, file.with_name("s99.png")) for file in pair
            ],
            5,
        ),
        (lambda pair: os.utime(pair[1], ns=(1, 1)), 4),
        (lambda pair: [file.unlink() for file in pair], 3),
    ],
    ids=["added", "changed", "removed"],
)
def test_a_source_that_changes_meanwhile_is_refused(
    mask_folder, ready, refusal, tmp_path, change, count
):
    root = mask_folder()
    pair = [root / folder / "s0.png" for folder in ("images", "masks")]
    error = refusal(root, on_progress=after(2, lambda: change(pair)))
    assert f"{root}, in which files were added, removed or changed" in error.received
    assert folders_in(tmp_path / "cache") == []
    assert ready(root).count == count


def test_a_file_that_goes_before_it_is_read_is_named(mask_folder, refusal):
    root = mask_folder(25)
    last = root / "images" / "s9.png"
    assert str(last) in refusal(root, on_progress=after(1, last.unlink)).received


def test_without_locks_the_set_that_came_first_stays_with_its_splits(
    mask_folder, ready, tmp_path, monkeypatch
):
    monkeypatch.setattr(preparation, "take", lambda *_, **__: None)
    root, first = mask_folder(), []

    def overtake():
        prepared = ready(root)
        first.append(ensure_split(prepared, None, 0).path)

    late = ready(root, on_progress=after(2, overtake))
    assert first[0].exists()
    assert late == Prepared.open(first[0].parent)
    assert half_made(tmp_path / "cache") == []


class Given:
    """A source with the given rows."""

    kind = "classes"
    label = identity = fingerprint = "given"

    def __init__(self, rows, names=("a", "b")):
        self._rows, self._names = rows, list(names)

    def contents(self):
        return Contents(2, (2, 2, 1), np.dtype(np.uint8), 1.0, None, {})

    def rows(self):
        return iter(self._rows)

    def class_names(self):
        return self._names


class Masks(Given):
    kind = "masks"


IMAGE = np.zeros((2, 2, 1), np.uint8)
MASK = np.zeros((2, 2), np.uint8)


def refusal_of(source, folder, **changes):
    with pytest.raises(UserError) as refused:
        write_set(source, replace(source.contents(), **changes), folder, None)
    assert not (folder / "meta.json").exists()
    return refused.value.received


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(IMAGE, 0)], "1 samples"),
        ([(IMAGE, 0), (IMAGE, 1), (IMAGE, 0)], "3 samples"),
        ([(IMAGE, 0), (IMAGE, 2)], "classes up to 2"),
        ([(IMAGE, 0), (IMAGE, -1)], "sample 1 of given, of class -1"),
        ([(IMAGE, 0), (IMAGE, 0.5)], "the target of sample 1"),
        ([(IMAGE, 0), (IMAGE, 2**40)], "the target of sample 1"),
        ([(IMAGE, 0), (IMAGE[:1], 1)], "sample 1 of given of shape [1, 2, 1]"),
        ([(IMAGE, 0), (IMAGE + 0.5, 1)], "sample 1 of given, with values 0.5..0.5"),
        (
            [(IMAGE, 0), (IMAGE.astype(int) + 256, 1)],
            "sample 1 of given, with values 256..256",
        ),
        ([(IMAGE, 0), (IMAGE + np.nan, 1)], "NaN"),
        ([(IMAGE.astype(object), 0)], "of type object"),
    ],
)
def test_samples_other_than_announced(tmp_path, rows, told):
    assert told in refusal_of(Given(rows), tmp_path)


def test_masks_beyond_the_classes(tmp_path):
    beyond = [(IMAGE, MASK), (IMAGE, MASK + np.uint8(9))]
    assert "classes up to 9" in refusal_of(Masks(beyond), tmp_path)
    ignored = Masks([(IMAGE, MASK), (IMAGE, MASK + np.uint8(255))])
    write_set(ignored, ignored.contents(), tmp_path, None)
    assert np.load(tmp_path / "targets.npy")[1].tolist() == [[255, 255]] * 2
    assert json.loads((tmp_path / "meta.json").read_text())["ignore"] == 255


def test_floats_of_any_width_are_stored_as_announced(tmp_path):
    rows = [(IMAGE + 0.5, 0), (IMAGE + np.float16(2), 1)]
    contents = replace(Given(rows).contents(), dtype=np.dtype(np.float32))
    write_set(Given(rows), contents, tmp_path, None)
    assert np.load(tmp_path / "inputs.npy").ravel().tolist() == [0.5] * 4 + [2] * 4
