import numpy as np
import pytest

from scalestudy.data.loading.reader import Stored
from scalestudy.data.store.prepared import Ragged

ROWS = [[1, 2, 3], [4], [], [5, 6]]


@pytest.fixture
def ragged():
    lengths = [len(row) for row in ROWS]
    return Ragged(np.array([one for row in ROWS for one in row], np.int32), np.cumsum([0, *lengths]))


@pytest.mark.parametrize(("rows", "length"), [([1, 3], 2), ([0, 1], 3), ([2], 1)])
def test_sequences_are_padded_with_zeros_to_the_longest_of_their_batch(ragged, rows, length):
    chosen = np.array(rows)
    shape, dtype = ragged.form(chosen)
    assert (shape, dtype) == ((length,), np.int32)
    into = np.full((len(rows), *shape), -1, dtype)
    ragged.copy(chosen, into)
    assert into.tolist() == [ROWS[row] + [0] * (length - len(ROWS[row])) for row in rows]


def test_a_row_that_is_not_there_is_an_error(ragged):
    with pytest.raises(IndexError, match="4 to 4 of 4"):
        ragged.copy(np.array([4]), np.zeros((1, 3), np.int32))


def test_a_reader_asks_each_call_anew_for_the_length_and_others_stay_fixed(ragged):
    reader = Stored({"words": ragged, "age": np.arange(4.0)}, np.arange(4))
    inputs, targets = reader.forms(np.array([0, 1]))
    assert inputs["words"][0] == (3,) and inputs["age"][0] == () and targets[0] == ()
    assert reader.forms(np.array([1]))[0]["words"][0] == (1,)
