import pytest

from scalestudy.study.hang import first_hung, first_stopped, in_words, stalled_for
from scalestudy.study.records import Hang, Sign


def sign(rank: int, marks: int, written: float = 0.0, **more) -> Sign:
    given = {"phase": "step", "epoch": 2, "step": marks // 3, "moved": 0.0, "due": 120.0, **more}
    return Sign(rank=rank, host=f"node{rank}", pid=7, marks=marks, written=written, **given)


def later(signs, *living: int) -> list[Sign]:
    """The signs as they stand when these ranks have written anew."""
    return [each.model_copy(update={"written": 5.0}) if each.rank in living else each for each in signs]


def test_the_rank_that_has_come_least_far_is_the_first_whatever_the_clocks_say():
    signs = [sign(0, 32, moved=10.0), sign(1, 30, moved=900.0, phase="callbacks"), sign(2, 32, moved=0.0)]
    found = first_hung(signs, later(signs, 0, 1, 2), 3, 120)
    assert (found.rank, found.host, found.phase, found.lives) == (1, "node1", "callbacks", True)


def test_among_ranks_at_the_same_place_it_is_the_one_that_writes_no_more():
    signs = [sign(0, 30), sign(1, 30), sign(2, 30)]
    found = first_hung(signs, later(signs, 0, 1), 3, 120)
    assert (found.rank, found.lives) == (2, False)


def test_signs_of_a_slow_file_system_that_come_late_do_not_make_a_rank_the_first():
    signs = [sign(0, 33), sign(1, 30)]
    assert first_hung(signs, later(signs, 1), 2, 120).rank == 1


def test_a_rank_that_gave_no_sign_is_the_first():
    found = first_hung([sign(0, 3)], [sign(0, 3)], 2, 600)
    assert (found.rank, found.phase) == (1, "")
    assert in_words(found) == "rank 1 gave no sign of life within 600 s"


def test_nobody_is_blamed_where_all_stand_at_the_same_place():
    signs = [sign(0, 30), sign(1, 30)]
    found = first_hung(signs, later(signs, 0, 1), 2, 120)
    assert found.rank is None
    assert in_words(found) == (
        "all ranks fell silent in epoch 2 after step 10 (step), and none is behind another: "
        "nothing moved for 120 s"
    )


def test_a_process_alone_is_named_however_it_fell_silent():
    alone = [sign(0, 30)]
    assert first_hung(alone, alone, 1, 9).rank == 0
    assert first_hung(alone, later(alone, 0), 1, 9).rank == 0


def test_of_the_ranks_that_write_no_more_the_one_that_has_come_least_far_was_stopped_first():
    signs = [sign(0, 20), sign(1, 32), sign(2, 30)]
    assert first_stopped(signs, later(signs, 0), 9).rank == 2
    assert first_stopped(signs, later(signs, 0, 1, 2), 9) is None


@pytest.mark.parametrize(
    ("lives", "words"), [(True, "it stands still"), (False, "its process is stopped, or its node is gone")]
)
def test_the_words_name_rank_host_and_place(lives, words):
    silence = Hang(rank=3, host="node2", phase="compile", seconds=600.4, lives=lives)
    told = f"rank 3 on node2 fell silent at compile, and {words}: nothing moved for 600 s"
    assert in_words(silence) == told


@pytest.mark.parametrize(
    ("moved", "due", "found"),
    [
        ([100.0, 99.0], 120, (0, False)),
        ([100.0, 76.0], 120, (20, False)),
        ([100.0, 69.0], 120, (30, True)),
        ([100.0, 0.0], 600, (100, False)),
        ([110.0], 120, (0, False)),  # a clock that is ahead
        ([], 120, (0, False)),
    ],
)
def test_a_run_is_as_silent_as_the_rank_that_is_furthest_behind(moved, due, found):
    signs = [sign(rank, 3, moved=each, due=due) for rank, each in enumerate(moved)]
    assert stalled_for(signs, 100.0) == found
