from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.heartbeat import Heartbeat


def test_every_mark_counts_and_keeps_what_it_does_not_change():
    heart = Heartbeat()
    heart.enter("input")
    heart.step(2, 5, "callbacks")
    heart.enter("step")
    last = heart.last
    assert (last.number, last.phase, last.epoch, last.step) == (3, "step", 2, 5)


def test_phases_are_told_when_they_are_entered_and_left():
    clock, seen = PhaseClock(), []
    with clock.phase("build"):
        seen.append(clock.heart.last.phase)
        with clock.phase("compile"):
            seen.append(clock.heart.last.phase)
        seen.append(clock.heart.last.phase)
    assert [*seen, clock.heart.last.phase] == ["build", "compile", "build", "start-up"]
    assert clock.heart.last.number == 4


def test_the_slowest_step_is_known_and_other_phases_are_none(monkeypatch):
    times = iter([0.0, 1.0, 4.0, 6.0, 96.0])
    monkeypatch.setattr("scalestudy.measure.heartbeat.time.monotonic", lambda: next(times))
    heart = Heartbeat()
    heart.enter("input")  # after 1 s of start-up
    heart.enter("step")  # after 3 s of waiting
    heart.enter("callbacks")  # after 2 s
    assert heart.last.slowest == 3.0
    heart.enter("input")  # after 90 s
    assert heart.last.slowest == 3.0
