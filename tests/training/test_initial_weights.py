"""Equal initial weights on engines that draw different numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalestudy.engines.group import Group
from scalestudy.training.initial_weights import begin_alike


class Drawn:
    """A trainer and its state, with the weights that its engine has drawn."""

    def __init__(self, *weights: Any) -> None:
        self.values = [np.array(weight) for weight in weights]
        self.shared = 0
        self.state = self

    def weights(self) -> list[list[np.ndarray]]:
        return [self.values]

    def begin_with(self, weights: list[np.ndarray]) -> None:
        self.values = list(weights)

    def share(self) -> None:
        self.shared += 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "initial" / "s0-abc.npz"


def test_all_runs_begin_with_the_weights_that_the_first_has_drawn(file):
    first, second = Drawn([1.0, 2.0], [[3.0]]), Drawn([7.0, 8.0], [[9.0]])
    for trainer in (first, second):
        begin_alike(trainer, Group(), file)
        assert [value.tolist() for value in trainer.values] == [[1.0, 2.0], [[3.0]]]
        assert trainer.shared == 1


def test_the_order_of_many_weights_is_kept(file):
    first, second = (
        Drawn(*(np.full(2, start + index) for index in range(12))) for start in (0, 50)
    )
    for trainer in (first, second):
        begin_alike(trainer, Group(), file)
    assert [value[0] for value in second.values] == list(range(12))


def test_a_model_of_other_shapes_or_types_begins_with_weights_of_its_own(file):
    for weights in ([1.0], [2.0, 3.0], np.float32([4.0])):
        trainer = Drawn(weights)
        begin_alike(trainer, Group(), file)
        assert np.array_equal(trainer.values[0], weights)
    assert len(list(file.parent.glob("*.npz"))) == 3


def test_other_ranks_take_the_weights_of_the_first(file):
    trainer = Drawn([5.0])
    begin_alike(trainer, Group(1, 2), file)
    assert trainer.shared == 1
    assert not file.parent.exists()
