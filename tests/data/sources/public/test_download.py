"""A published file is taken from where it lies, or fetched over connections that break, and checked."""

import hashlib
import random

import pytest

from scalestudy.data.sources.public.download import RemoteFile, fetch, mirrored
from scalestudy.util.errors import UserError

CONTENT = random.Random(0).randbytes(300_000)
FILE = RemoteFile(
    "https://data.example/pub/set.zip",
    f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
    len(CONTENT),
    ("old/set.zip",),
)
UNSIZED = RemoteFile(FILE.url, FILE.hash)


@pytest.fixture
def site(site, monkeypatch):
    monkeypatch.setattr("scalestudy.data.sources.public.download.PAUSE", 0.0)
    site.files["/data.example/pub/set.zip"] = CONTENT
    return site


@pytest.fixture
def store(tmp_path):
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def ranges(site):
    return [asked for _, asked in site.asked]


def breaking_after(count, until):
    """Each of the first `until` connections sends so many bytes of what was asked for, and breaks."""

    def spoil(handler, content, number):
        if number > until:
            return False
        asked = handler.headers.get("Range")
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        handler.begin(206 if start else 200, len(content) - start, start, len(content))
        handler.wfile.write(content[start : start + count])
        handler.hang_up()
        return True

    return spoil


def test_it_is_fetched_from_the_mirror_and_not_again(site, store):
    for _ in range(2):
        assert fetch(FILE, store).read_bytes() == CONTENT
    assert len(site.asked) == 1
    assert [file.name for file in store.iterdir()] == ["set.zip"]


def test_without_a_mirror_the_publisher_is_asked(monkeypatch):
    monkeypatch.delenv("SCALESTUDY_MIRROR", raising=False)
    assert mirrored(FILE.url) == FILE.url


@pytest.mark.parametrize(("content", "taken"), [(CONTENT, True), (b"older", False)])
def test_what_keras_has_already_is_taken_if_its_checksum_is_right(site, store, tmp_path, content, taken):
    stored = tmp_path / "keras" / "datasets" / "old" / "set.zip"
    stored.parent.mkdir(parents=True)
    stored.write_bytes(content)
    found = fetch(FILE, store)
    assert found.read_bytes() == CONTENT
    assert (found == stored) is taken is (site.asked == [])


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
    assert len(site.asked) == 1


def test_a_broken_download_resumes_where_it_broke(site, store):
    site.spoil = breaking_after(100_000, until=2)
    told = []

    def downloading(what, unit="bytes"):
        from contextlib import nullcontext

        return nullcontext(lambda done, total: told.append((done, total)))

    assert fetch(FILE, store, downloading).read_bytes() == CONTENT
    first, second, third = ranges(site)
    assert first is None and int(second[6:-1]) > 60_000 and int(third[6:-1]) > 120_000
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_what_a_killed_process_has_left_is_resumed(site, store):
    (store / "set.zip.part").write_bytes(CONTENT[:250_000])
    assert fetch(FILE, store).read_bytes() == CONTENT
    assert ranges(site) == ["bytes=250000-"]


@pytest.mark.parametrize(
    ("part", "asked"), [(b"x" * 2000, ["bytes=2000-", None]), (b"x" * 400_000, ["bytes=400000-", None])]
)
def test_a_part_of_another_file_is_dropped_and_the_whole_fetched(site, store, part, asked):
    (store / "set.zip.part").write_bytes(part)
    assert fetch(UNSIZED, store).read_bytes() == CONTENT
    assert ranges(site) == asked


def test_a_server_without_ranges_sends_all_again(site, store):
    (store / "set.zip.part").write_bytes(b"x" * 250_000)
    site.ranges = False
    assert fetch(FILE, store).read_bytes() == CONTENT
    assert len(site.asked) == 1


def test_a_dying_connection_is_given_up_and_what_came_stays(site, store):
    def silent(handler, content, number):
        if number == 1:
            return breaking_after(100_000, until=1)(handler, content, number)
        handler.begin(206, len(content) - 100_000, 100_000, len(content))
        handler.wfile.flush()
        handler.site.ended.wait()
        return True

    site.spoil = silent
    with pytest.raises(UserError, match="https_proxy"):
        fetch(FILE, store, timeout=0.05)
    came = (store / "set.zip.part").read_bytes()
    assert len(came) > 60_000 and CONTENT.startswith(came)


def test_a_page_in_place_of_the_file_is_refused_at_once(site, store):
    def page(handler, content, number):
        text = b"<html><head><title>Sign in</title></head></html>"
        handler.begin(200, len(text), kind="text/html; charset=utf-8")
        handler.wfile.write(text)
        return True

    site.spoil = page
    with pytest.raises(UserError, match="a page of HTML"):
        fetch(FILE, store)
    assert len(site.asked) == 1


def test_a_missing_file_is_refused_at_once(site, store):
    site.files.clear()
    with pytest.raises(UserError, match="404"):
        fetch(FILE, store)
    assert len(site.asked) == 1


def test_a_busy_server_is_asked_again(site, store):
    def busy(handler, content, number):
        if number < 3:
            handler.begin(503, 0)
        return number < 3

    site.spoil = busy
    assert fetch(FILE, store).read_bytes() == CONTENT


@pytest.mark.parametrize("mirror", ["data.example", "ftp://data.example"])
def test_a_mirror_that_is_no_address_is_refused(store, monkeypatch, mirror):
    monkeypatch.setenv("SCALESTUDY_MIRROR", mirror)
    with pytest.raises(UserError, match="SCALESTUDY_MIRROR"):
        fetch(FILE, store)
