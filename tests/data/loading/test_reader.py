import numpy as np
import pytest

from scalestudy.data.loading.reader import Stored, copy_rows


def test_rows_are_read_in_the_order_asked_for():
    source = Stored(np.arange(12).reshape(6, 2), {"a": np.arange(6), "b": np.arange(6.0)})
    forms = source.forms(np.array([0]))
    assert forms == (
        ((2,), np.dtype(np.int64)),
        {"a": ((), np.dtype(np.int64)), "b": ((), np.dtype(np.float64))},
    )
    inputs, targets = np.empty((2, 2), np.int64), {"a": np.empty(2, np.int64), "b": np.empty(2)}
    source.read(np.array([5, 1]), None, inputs, targets)
    assert inputs.tolist() == [[10, 11], [2, 3]]
    assert (targets["a"].tolist(), targets["b"].tolist()) == ([5, 1], [5.0, 1.0])


@pytest.mark.parametrize("row", [-1, 3])
def test_a_row_that_is_not_there_is_an_error(row):
    with pytest.raises(IndexError):
        copy_rows(np.arange(3), np.array([row]), np.empty(1, np.int64))
