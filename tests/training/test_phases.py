"""Pretrained layers stay frozen for some epochs, then all layers learn."""

import numpy as np
import pytest

from paths import SUPPORT

pytestmark = pytest.mark.engine

TASK = str(SUPPORT / "pretrained_task.py")
HEAD = 2
"""Variables after the backbone: a kernel and a bias, the last of the model's weights."""


def trained(session, epochs, **settings):
    """Return the weights before training and after each epoch, the records, and the session."""
    made = session(TASK, epochs=epochs, sync_batch_norm=True, **settings)
    made.compile()
    weights = [made.trainer.state.weights()[0]]
    records = []
    for record in made.epoch_records():
        weights.append(made.trainer.state.weights()[0])
        records.append(record)
    return weights, records, made


def moved(one, other):
    return [not np.array_equal(a, b) for a, b in zip(one, other, strict=True)]


def test_the_backbone_stays_as_it_is_and_then_learns(session):
    weights, records, made = trained(
        session, 3, optimizer="adam", frozen_epochs=2, unfrozen_rate=0.1
    )
    assert made.trainer.phases == [0, 2 * made.steps]
    for one, other in ((0, 1), (1, 2)):
        assert (
            moved(weights[one], weights[other])
            == [False] * (len(weights[0]) - HEAD) + [True] * HEAD
        )
    assert all(moved(weights[2], weights[3]))
    assert [record.learning_rate for record in records] == pytest.approx(
        [0.05, 0.05, 0.005]
    )
    assert (
        int(made.trainer.optimizer.iterations.numpy()) == made.steps
    )  # a new optimizer


def test_the_optimizer_of_a_phase_counts_from_its_first_step(session, monkeypatch):
    from scalestudy.engines.tensorflow.trainer import TensorFlowTrainer

    begins, plain = [], TensorFlowTrainer._train_call

    def noted(trainer, point, phase, buckets):
        begins.append(phase.first)
        return plain(trainer, point, phase, buckets)

    monkeypatch.setattr(TensorFlowTrainer, "_train_call", noted)
    made = session(TASK, epochs=3, frozen_epochs=2)
    assert begins == [0, 2 * made.steps]


def test_a_run_that_ends_before_trains_the_head_alone(session):
    weights, _, made = trained(session, 2, frozen_epochs=5)
    assert made.trainer.phases == [0]
    assert moved(weights[0], weights[2])[-HEAD:] == [True] * HEAD
    assert not any(moved(weights[0], weights[2])[:-HEAD])


@pytest.mark.parametrize(
    ("implementation", "workers"), [("mirrored", 2), ("virtual", 4)]
)
def test_several_workers_come_to_the_weights_of_one(session, implementation, workers):
    settings = {"frozen_epochs": 1, "precision": "float64"}
    alone, _, _ = trained(session, 2, **settings)
    several, _, made = trained(
        session, 2, implementation=implementation, workers=workers, **settings
    )
    assert all(
        np.allclose(a, b, rtol=0, atol=1e-8)
        for a, b in zip(alone[-1], several[-1], strict=True)
    )
    assert len(set(made.digests())) == 1


def test_a_run_that_is_taken_up_as_a_phase_ends_comes_to_the_same_end(session):
    whole, _, _ = trained(session, 2, optimizer="adam", frozen_epochs=1)
    first = session(
        TASK, epochs=2, optimizer="adam", frozen_epochs=1, sync_batch_norm=True
    )
    first.compile()
    next(first.epoch_records())
    second = session(
        TASK, epochs=2, optimizer="adam", frozen_epochs=1, sync_batch_norm=True
    )
    second.compile()
    second.restore(*first.checkpoint())
    list(second.epoch_records())
    assert all(map(np.array_equal, whole[-1], second.trainer.state.weights()[0]))


@pytest.mark.parametrize("frozen", [1, 2])
def test_a_callback_sets_the_rate_of_the_phase_that_an_epoch_belongs_to(
    session, frozen
):
    import keras

    made = session(TASK, epochs=3, frozen_epochs=frozen, sync_batch_norm=True)
    made.trainer.task.callbacks.append(
        keras.callbacks.LearningRateScheduler(lambda epoch: 0.04 / 2**epoch)
    )
    made.compile()
    rates = [record.learning_rate for record in made.epoch_records()]
    assert rates == pytest.approx([0.04, 0.02, 0.01])
