"""A file comes whole over connections that break, stall or lie, or it is said why it does not."""

import random

import pytest

from scalestudy.data.sources.public.download import Transfer
from scalestudy.errors import UserError

CONTENT = random.Random(0).randbytes(300_000)


@pytest.fixture
def get(site, tmp_path):
    """Fetch the one file; its bytes, and the transfer."""
    site.files["/file"] = CONTENT

    def get(**options):
        options = {"patience": 5.0, "pause": 0.0, **options}
        transfer = Transfer(tmp_path / "file.part", **options)
        transfer(f"{site.address}/file", str(tmp_path / "file"), None)
        return (tmp_path / "file").read_bytes()

    return get


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


def test_a_whole_file_comes_at_once_and_its_bytes_are_told(site, get):
    told = []
    assert get(on_bytes=lambda done, total: told.append((done, total))) == CONTENT
    assert site.asked == [("/file", None)]
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_a_broken_download_goes_on_where_it_broke(site, get):
    site.spoil = breaking_after(100_000, until=2)
    assert get() == CONTENT
    assert site.asked == [("/file", None), ("/file", "bytes=100000-"), ("/file", "bytes=200000-")]


def test_what_a_killed_process_has_left_is_gone_on_from(site, get, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT[:250_000])
    assert get() == CONTENT
    assert site.asked == [("/file", "bytes=250000-")]


def test_a_server_without_ranges_sends_all_again(site, get, tmp_path):
    (tmp_path / "file.part").write_bytes(b"x" * 250_000)
    site.ranges = False
    assert get() == CONTENT
    assert len(site.asked) == 1


def test_a_part_longer_than_the_file_is_begun_anew(site, get, tmp_path):
    (tmp_path / "file.part").write_bytes(b"x" * 400_000)
    assert get() == CONTENT
    assert site.asked == [("/file", "bytes=400000-"), ("/file", None)]


def test_a_whole_part_is_not_asked_for_again(site, get, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT)
    assert get(size=len(CONTENT)) == CONTENT
    assert site.asked == []


def test_a_content_length_that_is_too_short_is_not_believed(site, get):
    def short(handler, content, number):
        if number == 1:
            handler.begin(200, 1000)
            handler.wfile.write(content)
            handler.hang_up()
        return number == 1

    site.spoil = short
    assert get(size=len(CONTENT)) == CONTENT


def test_a_content_length_that_is_too_long_ends_with_what_came(site, get):
    def long(handler, content, number):
        handler.begin(200, len(content) * 2)
        handler.wfile.write(content)
        handler.hang_up()
        return True

    site.spoil = long
    assert get(size=len(CONTENT)) == CONTENT
    with pytest.raises(UserError, match=r"ended after 293 KiB of 586 KiB|broke the connection"):
        get()


def test_more_than_was_published_is_refused(site, get):
    with pytest.raises(UserError, match=r"a file of 1,000 bytes, as published"):
        get(size=1000)


def test_a_dying_connection_is_given_up_with_what_came_kept(site, get, tmp_path):
    def silent(handler, content, number):
        if number == 1:
            return breaking_after(100_000, until=1)(handler, content, number)
        handler.begin(206, len(content) - 100_000, 100_000, len(content))
        handler.wfile.flush()
        handler.site.ended.wait()
        return True

    site.spoil = silent
    with pytest.raises(UserError) as refused:
        get(patience=0.05)
    assert "which sent nothing for too long, 5 times in a row" in refused.value.received
    assert "goes on from the 97.7 KiB that are here" in refused.value.action
    assert (tmp_path / "file.part").read_bytes() == CONTENT[:100_000]


def test_a_trickle_is_taken_for_dead(site, get):
    def trickle(handler, content, number):
        if number > 1:
            return False
        handler.begin(200, len(content))
        while not handler.site.ended.wait(0.01):
            try:
                handler.wfile.write(b"x")
            except OSError:
                break
        return True

    site.spoil = trickle
    # A byte each 10 ms is within the time in which something must come, but too little comes in all.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scalestudy.data.sources.public.download.LEAST_RATE", 10_000.0)
        get(patience=0.2)
    assert site.asked[1][1] is not None


def test_a_slow_connection_is_not(site, get):
    """It takes several times the patience, which counts only while nothing comes."""

    def slow(handler, content, number):
        handler.begin(200, len(content))
        for start in range(0, len(content), 30_000):
            handler.wfile.write(content[start : start + 30_000])
            handler.wfile.flush()
            handler.site.ended.wait(0.2)
        return True

    site.spoil = slow
    assert get(patience=1.5) == CONTENT
    assert len(site.asked) == 1


def test_a_page_in_place_of_the_file_is_refused_by_its_title(site, get):
    def page(handler, content, number):
        text = b"<html><head><title>Sign in to\n the proxy</title></head></html>"
        handler.begin(200, len(text), kind="text/html; charset=utf-8")
        handler.wfile.write(text)
        return True

    site.spoil = page
    with pytest.raises(UserError) as refused:
        get()
    assert "200 OK and a page of HTML ('Sign in to the proxy') from 127.0.0.1" in refused.value.received
    assert "https_proxy" in refused.value.action
    assert len(site.asked) == 1


def test_a_missing_file_is_refused_at_once(site, get):
    del site.files["/file"]
    with pytest.raises(UserError, match="404 Not Found"):
        get()
    assert len(site.asked) == 1


def test_a_busy_server_is_asked_again(site, get):
    def busy(handler, content, number):
        if number < 3:
            handler.begin(503, 0)
        return number < 3

    site.spoil = busy
    assert get() == CONTENT


def test_a_server_that_is_not_there_is_named(tmp_path):
    transfer = Transfer(tmp_path / "p", patience=0.2, pause=0.0)
    with pytest.raises(
        UserError, match=r"127\.0\.0\.1:1/x, which could not be reached \(Connection refused\)"
    ):
        transfer("http://127.0.0.1:1/x", str(tmp_path / "file"), None)


def test_an_address_that_is_none_is_refused(tmp_path):
    with pytest.raises(UserError, match="SCALESTUDY_MIRROR"):
        Transfer(tmp_path / "p")("data.example/x", str(tmp_path / "file"), None)
