"""Prepare a set while other processes do, while files change, and while processes are killed."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from scalestudy.data.sources.base import Contents
from scalestudy.data.split import stored_split
from scalestudy.data.store import write as module
from scalestudy.data.store.prepared import Prepared
from scalestudy.data.store.rows import HashedFile
from scalestudy.data.store.write import write_set
from scalestudy.util.errors import UserError

PROGRAM = """
import sys
from scalestudy.data.store.prepare import prepare
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


def half_made(cache):
    return [entry.name for entry in cache.iterdir() if ".tmp-" in entry.name]


def refusal(ready, root, **options):
    with pytest.raises(UserError) as refused:
        ready(root, **options)
    return refused.value


def after(done, action):
    """Return an `on_progress` that calls `action` once after `done` samples."""
    return lambda now, _: action() if now == done else None


@pytest.mark.slow
def test_what_a_killed_process_left_is_cleared_by_the_next_that_makes_the_set(mask_folder, ready, tmp_path):
    cache = tmp_path / "cache"
    other = started(cache)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "writing\n"
        ready(mask_folder())
        assert len(half_made(cache)) == 1  # its process is alive, so no other may remove it
    finally:
        other.kill()
        other.communicate()
    assert ready("indents:8", image_size=(48, 64)).count == 8
    assert half_made(cache) == []


@pytest.mark.parametrize("storage", ["arrays", "encoded"])
def test_a_disk_that_fills_up_leaves_nothing(mask_folder, ready, tmp_path, monkeypatch, storage):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(HashedFile, "finish", full)
    error = refusal(ready, mask_folder(), storage=storage)
    assert f"{tmp_path / 'cache'}: No space left" in error.received
    assert [entry for entry in (tmp_path / "cache").iterdir() if entry.is_dir()] == []


def test_a_cache_that_is_removed_meanwhile_is_told_and_made_again(mask_folder, ready, tmp_path):
    root, cache = mask_folder(), tmp_path / "cache"
    error = refusal(ready, root, on_progress=after(2, lambda: shutil.rmtree(cache)))
    assert f"{cache}: No such file" in error.received
    assert not cache.exists()
    assert ready(root).count == 4


def test_an_interrupt_leaves_nothing_half_written(mask_folder, ready, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ready(mask_folder(), on_progress=after(2, interrupt))
    assert half_made(tmp_path / "cache") == []


def add(root):
    for folder in ("images", "masks"):
        shutil.copy(root / folder / "s0.png", root / folder / "s99.png")


def touch(root):
    os.utime(root / "masks" / "s0.png", ns=(1, 1))


def remove(root):
    for folder in ("images", "masks"):
        (root / folder / "s0.png").unlink()


@pytest.mark.parametrize("change", [add, touch, remove])
def test_a_source_that_changes_meanwhile_is_refused(mask_folder, ready, tmp_path, change):
    root = mask_folder()
    error = refusal(ready, root, on_progress=after(2, lambda: change(root)))
    assert f"{root}, in which files were added, removed or changed" in error.received
    assert [entry for entry in (tmp_path / "cache").iterdir() if entry.is_dir()] == []
    assert ready(root).count == {add: 5, touch: 4, remove: 3}[change]


def test_a_file_that_goes_before_it_is_read_is_named(mask_folder, ready):
    root = mask_folder(25)
    last = root / "images" / "s9.png"
    error = refusal(ready, root, on_progress=after(1, last.unlink))
    assert str(last) in error.received


def test_without_locks_the_set_that_came_first_stays_with_its_splits(
    mask_folder, ready, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "take", lambda *_, **__: None)
    root, first = mask_folder(), []

    def overtake():
        prepared = ready(root)
        first.append(stored_split(prepared, None, 0).path)

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
        ([(IMAGE, 0), (IMAGE.astype(int) + 256, 1)], "sample 1 of given, with values 256..256"),
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
