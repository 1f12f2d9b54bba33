"""A published file is taken from where it lies, or fetched and held against its checksum."""

import hashlib

import pytest

from scalestudy.data.sources.public.download import RemoteFile, fetch, mirrored
from scalestudy.errors import UserError

CONTENT = b"a set" * 1000
FILE = RemoteFile(
    "https://data.example/pub/set.zip",
    f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
    len(CONTENT),
    ("old/set.zip",),
)


def test_it_is_fetched_from_the_mirror_and_not_again(site, tmp_path):
    site.files["/data.example/pub/set.zip"] = CONTENT
    for _ in range(2):
        assert fetch(FILE, tmp_path / "store").read_bytes() == CONTENT
    assert len(site.asked) == 1
    assert [file.name for file in (tmp_path / "store").iterdir()] == ["set.zip"]


def test_without_a_mirror_the_publisher_is_asked(monkeypatch):
    monkeypatch.delenv("SCALESTUDY_MIRROR", raising=False)
    assert mirrored(FILE.url) == FILE.url


def test_what_keras_has_already_is_taken(site, tmp_path):
    kept = tmp_path / "keras" / "datasets" / "old" / "set.zip"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(CONTENT)
    assert fetch(FILE, tmp_path / "store") == kept
    assert site.asked == []


def test_what_keras_has_with_another_checksum_is_not(site, tmp_path):
    kept = tmp_path / "keras" / "datasets" / "old" / "set.zip"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"older")
    site.files["/data.example/pub/set.zip"] = CONTENT
    assert fetch(FILE, tmp_path / "store").read_bytes() == CONTENT


def test_a_file_put_there_by_hand_is_taken(site, tmp_path):
    (tmp_path / "set.zip").write_bytes(CONTENT)
    assert fetch(FILE, tmp_path) == tmp_path / "set.zip"
    assert site.asked == []


def test_a_wrong_checksum_is_refused_and_nothing_stays(site, tmp_path):
    site.files["/data.example/pub/set.zip"] = CONTENT[:-1] + b"x"
    with pytest.raises(UserError) as refused:
        fetch(FILE, tmp_path / "store")
    assert f"published checksum {FILE.hash}" in refused.value.expected
    assert str(tmp_path / "store" / "set.zip") in refused.value.action
    assert list((tmp_path / "store").iterdir()) == []
    assert len(site.asked) == 1


def test_a_part_of_another_file_is_dropped_and_the_whole_fetched(site, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    (store / "set.zip.part").write_bytes(b"x" * 2000)
    site.files["/data.example/pub/set.zip"] = CONTENT
    assert fetch(FILE, store).read_bytes() == CONTENT
    assert [asked for _, asked in site.asked] == ["bytes=2000-", None]
