"""Taking a launcher's steps."""

from scalestudy.app.follow import stay
from scalestudy.app.listener import Listener
from scalestudy.launch.base import Note, Options, Overview


def test_what_a_launcher_says_while_it_waits_is_told(monkeypatch):
    monkeypatch.setattr("scalestudy.app.follow.study_status", lambda folder, known, names=None: known)
    told = []

    class Told(Listener):
        def note(self, text):
            told.append(text)

    class Launcher:
        def start(self, folder, points, options):
            yield Note("a waits for a GPU")

    stay(Launcher(), None, [], Overview([]), Options(), Told())
    assert told == ["a waits for a GPU"]
