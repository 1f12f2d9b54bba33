"""A public set is stored completely, once, and then read without the network."""

import hashlib
import os
import resource
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.sources.public.base import About, Public, Recipe, downloads
from scalestudy.data.sources.public.download import RemoteFile, fetch
from scalestudy.data.store.make import locked
from scalestudy.util.errors import UserError


class Making:
    """A recipe's `make` that counts its calls and can fail."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None

    def __call__(self, folder, store, downloading):
        self.calls += 1
        (store / "file.part").write_bytes(b"half")
        x = np.arange(8 * 16, dtype=np.uint8).reshape(8, 4, 4)
        np.savez(folder / "set.npz", x_train=x, y_train=np.arange(8) % 2)
        if self.error:
            raise self.error
        return About(["cat", "dog"], facts={"set": "pets 1"})


@pytest.fixture
def making():
    return Making()


@pytest.fixture
def source(tmp_path, making):
    """Create the source anew, as each command does."""
    data = data_of("pets", cache=tmp_path / "cache")
    return lambda: Public(Recipe("pets", "pets", "classes", "1", making), data)


def left_in(source) -> list[str]:
    return sorted(entry.name for entry in source._place.parent.iterdir() if entry.suffix != ".lock")


def test_it_is_fetched_once_and_read_as_what_it_is(source, making):
    first = source()
    first.fetch()
    again = source()
    again.fetch()
    assert making.calls == 1
    assert again.contents().count == 8
    assert again.fingerprint == first.fingerprint
    assert len(list(again.rows())) == 8
    assert again.class_names() == ["cat", "dog"]
    assert left_in(first) == ["pets"]


def test_a_failure_leaves_what_was_downloaded_and_nothing_in_place(source, making):
    making.error = UserError("a", "b", "c")
    with pytest.raises(UserError):
        source().fetch()
    assert left_in(source()) == ["pets.files"]
    making.error = None
    source().fetch()
    assert left_in(source()) == ["pets"]


def test_a_disk_that_fills_is_named_and_leaves_nothing_half_written(source, making):
    making.error = OSError(28, "No space left on device")
    with pytest.raises(UserError, match="No space left on device"):
        source().fetch()
    assert left_in(source()) == ["pets.files"]


def test_a_disk_that_fills_while_it_comes_is_named(site, tmp_path):
    content = os.urandom(300_000)
    file = RemoteFile("https://data.example/x.bin", f"sha256:{hashlib.sha256(content).hexdigest()}")
    site.files["/data.example/x.bin"] = content

    def make(folder, store, downloading):
        (folder / "set.bin").write_bytes(fetch(file, store, downloading).read_bytes())
        return About()

    source = Public(Recipe("x", "x", "classes", "1", make), data_of("x", cache=tmp_path / "cache"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # limit the file size, like a full disk
    try:
        with pytest.raises(UserError, match=r"has space.*File too large"):
            source.fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert left_in(source) == ["x.files"]
    source.fetch()
    assert (source._place / "set.bin").read_bytes() == content


def test_a_set_that_files_were_taken_out_of_is_fetched_again(source, making):
    source().fetch()
    (source()._place / "set.npz").unlink()
    with pytest.raises(UserError):
        source().contents()
    source().fetch()
    assert making.calls == 2
    assert source().contents().count == 8


def test_two_at_once_wait_for_each_other(source, making):
    with locked(source()._place):
        waiting = threading.Thread(target=source().fetch)
        waiting.start()
        # The lock holder stores the set meanwhile.
        source()._put(lambda what, unit="bytes": None, alone=True)
    waiting.join()
    assert making.calls == 1


KILLED = """
import os, sys, signal
from pathlib import Path
from scalestudy.data.sources.public.base import Public, Recipe
from scalestudy.study.settings import DataSettings

def make(folder, store, downloading):
    (store / "file.part").write_bytes(b"half")
    (folder / "set.npz").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)

Public(Recipe("pets", "pets", "classes", "1", make), DataSettings(source="pets", cache=sys.argv[1])).fetch()
"""


def test_what_a_kill_leaves_is_never_used_and_is_cleared_by_the_next(source, tmp_path):
    cache = str(downloads(data_of("pets", cache=tmp_path / "cache")).parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", KILLED, cache], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(left_in(source())) == 2
    with pytest.raises(UserError):
        source().contents()
    source().fetch()
    assert source().contents().count == 8
    assert left_in(source()) == ["pets"]
