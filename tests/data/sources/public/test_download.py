"""A published file is downloaded once and its checksum verified."""

import hashlib
import random
from contextlib import nullcontext

import pytest

from scalestudy.data.sources.public.download import RemoteFile, fetch
from scalestudy.util.errors import UserError

CONTENT = random.Random(0).randbytes(300_000)
FILE = RemoteFile("https://data.example/pub/set.zip", f"sha256:{hashlib.sha256(CONTENT).hexdigest()}")


@pytest.fixture
def site(site):
    site.files["/data.example/pub/set.zip"] = CONTENT
    return site


@pytest.fixture
def store(tmp_path):
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def test_it_is_fetched_once_and_told_of(site, store):
    progress = []
    for _ in range(2):
        fetched = fetch(FILE, store, lambda *_: nullcontext(lambda *numbers: progress.append(numbers)))
        assert fetched.read_bytes() == CONTENT
    assert len(site.asked) == 1
    assert progress[-1] == (len(CONTENT), len(CONTENT))
    assert [file.name for file in store.iterdir()] == ["set.zip"]


def test_a_file_put_there_by_hand_is_taken(site, store):
    (store / "set.zip").write_bytes(CONTENT)
    assert fetch(FILE, store) == store / "set.zip"
    assert site.asked == []


def test_a_wrong_checksum_is_refused_and_nothing_stays(site, store):
    site.files["/data.example/pub/set.zip"] = CONTENT[:-1] + b"x"
    with pytest.raises(UserError) as refused:
        fetch(FILE, store)
    assert FILE.hash in refused.value.expected
    assert str(store / "set.zip") in refused.value.action
    assert list(store.iterdir()) == []
