"""What a job carries in its queue is read again, whatever a site writes around it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.launch.queue.base import Mark, new_mark, read_mark, study_digest

HEXADECIMAL = st.text("0123456789abcdef", min_size=16, max_size=16)


@given(HEXADECIMAL, HEXADECIMAL, st.text(max_size=10), st.text(max_size=10))
def test_a_mark_is_found_within_a_comment(study, submission, before, after):
    mark = Mark(study, submission)
    assert read_mark(f"{before} {mark} {after}") == mark


@pytest.mark.parametrize("text", ["", "(null)", "scalestudy", "scalestudy:12:34", "scalestudy:" + "0" * 16])
def test_other_words_hold_none(text):
    assert read_mark(text) is None


def test_every_submission_has_digits_of_its_own_and_all_of_a_folder_the_same_study(tmp_path):
    first, second = new_mark(tmp_path), new_mark(tmp_path)
    assert first.submission != second.submission
    assert first.study == second.study != new_mark(tmp_path / "other").study


def test_a_folder_is_known_by_its_place_though_it_was_removed_or_is_reached_by_a_link(tmp_path, monkeypatch):
    place = tmp_path / "study"
    before = study_digest(place)
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    monkeypatch.chdir(tmp_path)
    assert study_digest(place) == study_digest(tmp_path / "link") == study_digest(Path("study")) == before
