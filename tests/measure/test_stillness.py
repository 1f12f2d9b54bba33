import itertools

from scalestudy.measure.heartbeat import ProgressTimer


def looks(times, seen):
    clock = iter([times[0], *times])
    still = ProgressTimer(5.0, lambda: next(clock))
    return [still.look(each) for each in seen]


def test_seconds_add_up_until_something_changes():
    assert looks([0, 1, 2, 3, 4], "aaaba") == [0, 1, 2, 0, 0]


def test_the_time_in_which_the_process_was_suspended_does_not_count():
    assert looks([0, 1, 9000, 9001], "aaaa") == [0, 1, 6, 7]


def test_what_never_changes_is_still_from_the_first_look():
    assert looks(list(range(4)), itertools.repeat([], 4)) == [0, 1, 2, 3]
