"""Prepare a set while other processes do, while files change, and while processes are killed."""

import os
import shutil
import subprocess
import sys

import pytest

from scalestudy.data.splits.split import stored_split
from scalestudy.data.store import make as module
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError

PROGRAM = """
import resource, sys
from scalestudy.data.store.prepare import prepare
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

def pause(done, total):
    if done == 3:
        print("writing", flush=True)
        sys.stdin.readline()

if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
    pause = None
try:
    storage = sys.argv[3] if len(sys.argv) > 3 else "auto"
    data = DataSettings(source="indents:8", image_size=(48, 64), cache=sys.argv[1], storage=storage)
    print(prepare(data, on_progress=pause).count)
except UserError as error:
    print(error)
"""


def started(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
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


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["arrays", "encoded"])
def test_a_disk_that_fills_up_is_told_and_nothing_half_written_stays(tmp_path, storage):
    told, _ = started(tmp_path, 10_000, storage).communicate()
    assert "Expected a cache folder that stays, can be written to and has space" in told
    assert f"{tmp_path}: File too large" in told
    assert half_made(tmp_path) == []
    assert not list(tmp_path.glob("*/meta.json"))


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
