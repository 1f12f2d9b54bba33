"""The answers of ranks to an assignment, by the events of their trials."""

import pytest

from scalestudy.features.check.check_files import Exchange, Facts


class Clock:
    """A clock that advances by four seconds in each `sleep` only."""

    def __init__(self, meanwhile):
        self.now, self.meanwhile = 0.0, iter(meanwhile)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += 4 * bool(seconds)
        for event in next(self.meanwhile, ()):
            self.exchange.append_event(7, 0, **event)


@pytest.fixture
def answer(tmp_path, monkeypatch):
    """Return the answer of rank 0, whose events arrive one group every four seconds, and the time by then."""

    def ask(*events, limit=5):
        clock = Clock(events)
        clock.exchange = exchange = Exchange(tmp_path)
        monkeypatch.setattr("scalestudy.features.check.check_files.time", clock)
        return exchange.answers(7, 1, limit, slack=5).get(0), clock.now

    return ask


BEGUN, JOINED, DONE = ({"step": step} for step in ("begun", "joined", "done"))


def timed(size):
    return {"step": "timed", "bytes": size, "seconds": 2.0}


def test_one_that_goes_on_slowly_is_done_far_beyond_the_limit_of_silence(answer):
    found, now = answer([BEGUN, JOINED], [timed(4)], [timed(8)], [timed(16)], [DONE])
    assert (found.state, found.seconds, now) == ("done", {4: 2.0, 8: 2.0, 16: 2.0}, 20)


def test_one_that_breaks_leaves_its_last_words(answer, tmp_path):
    log = Exchange(tmp_path).log(7, 0)
    log.parent.mkdir()
    log.write_text("a word\n\nno route to host\n")
    found, _ = answer([BEGUN, JOINED], [{"step": "ended", "code": 1}])
    assert (found.state, found.step, found.tail) == (
        "failed",
        "the first sum",
        ["a word", "no route to host"],
    )


@pytest.mark.parametrize(
    ("events", "step"), [([BEGUN], "joining"), ([BEGUN, JOINED], "the first sum")]
)
def test_one_that_says_nothing_more_has_stalled(answer, events, step):
    found, now = answer(events)
    assert (found.state, found.step, found.tail, now) == ("stalled", step, [], 12)


def test_one_that_never_begins_is_left_out_after_more_time(answer):
    assert answer() == (None, 12)


def test_a_build_is_what_was_reported_last(answer):
    built = {"step": "built", "gpus": 0}
    found, _ = answer(
        [BEGUN, built, {**built, "no_gpus": "why"}, {"step": "ended", "code": 0}]
    )
    assert (found.state, found.build["no_gpus"]) == ("done", "why")


def test_ranks_that_do_not_appear_within_the_limit_have_no_facts(tmp_path):
    exchange = Exchange(tmp_path)
    exchange.write_facts(Facts(rank=1, host="n1", local_rank=0, gpus=0))
    assert list(exchange.facts(2, 0.0)) == [1]
