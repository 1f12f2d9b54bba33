"""All faults of a set are reported together."""

from pathlib import Path

import pytest

from scalestudy.data.images.open import DamagedFile
from scalestudy.data.sources.faults import Refused, all_or_refused, listed
from scalestudy.util.errors import UserError


def refuse_odd(number):
    if number % 2:
        raise UserError("even numbers", str(number), "Halve them.")
    return number * 10


def test_all_that_are_refused_are_named_at_the_end():
    outcomes = all_or_refused(refuse_odd, range(20))
    assert [next(outcomes) for _ in range(10)] == list(range(0, 200, 20))
    with pytest.raises(UserError) as refused:
        next(outcomes)
    assert refused.value.received == "1; 3; 5; 7; 9 and 5 more"
    assert refused.value.action == "Halve them."


def test_faults_are_counted_and_named_by_their_reason():
    errors = [UserError("a", "x", "do"), UserError("b", "y", "do not"), UserError("a", "z", "do")]
    assert Refused(errors).received == "3 that are refused: 2 against: a (x; z); 1 against: b (y)"
    assert Refused(errors).errors == tuple(errors)


def test_of_many_reasons_the_first_three_files_of_each_are_named():
    errors = [DamagedFile(Path(f"{i}.png"), "empty" if i % 2 else "broken", "as it is") for i in range(9)]
    assert Refused(errors).received == (
        "9 that are refused: 5 broken (0.png; 2.png; 4.png and 2 more); "
        "4 empty (1.png; 3.png; 5.png and 1 more)"
    )


def test_more_than_a_message_shows_are_listed_in_a_file_that_it_names(tmp_path):
    file = tmp_path / "list.txt"
    with pytest.raises(UserError) as refused, listed(file):
        raise Refused([UserError("a", f"x{i}", "do") for i in range(7)])
    assert refused.value.received == f"x0; x1; x2; x3; x4 and 2 more; all 7 are listed in {file}"
    assert file.read_text().splitlines() == [f"against: a\tx{i}" for i in range(7)]
