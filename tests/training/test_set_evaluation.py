"""Losses and metrics of real runs on one and more workers, compared with scikit-learn on all predictions."""

import numpy as np
import pytest

from scalestudy.config.objectives import METRICS

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def reference():
    from sklearn import metrics

    return metrics


def asked(task: str) -> list[str]:
    senseless = {"top_k"} if task == "unet" else set()  # it needs more than two classes
    return ["dice", *(name for name in METRICS if name not in {"dice", *senseless})]


def measured(session, task: str, implementation: str, workers: int):
    """Return a session and what its workers measure over the validation set."""
    loss = "0.5*bce + dice" if task == "unet" else "focal(gamma=1)"
    one = session(
        task, implementation, workers, batch_size=7, loss=loss, metrics=asked(task)
    )
    return one, one.measure(one.split.validation)


@pytest.mark.parametrize("task", ["unet", "cnn"])
def test_workers_find_together_what_one_finds_however_the_set_is_divided(session, task):
    alone = measured(session, task, "single", 1)[1]
    for implementation, workers in (("mirrored", 2), ("virtual", 5)):
        found = measured(session, task, implementation, workers)[1]
        assert found.keys() == alone.keys()
        assert found == pytest.approx(alone, rel=1e-5)


def validation_outputs(one, prepared):
    rows = one.split.validation
    with one.evaluating():
        outputs = np.asarray(
            one.trainer.task.model(
                prepared.inputs[rows].astype("float32") * prepared.scale
            )
        )
    return np.asarray(prepared.targets[rows]).ravel(), outputs.reshape(
        -1, outputs.shape[-1]
    ).astype(float)


def test_of_classes_they_are_scikit_learns_on_all_samples(session, sets, reference):
    one, found = measured(session, "cnn", "virtual", 3)
    true, p = validation_outputs(one, sets["cnn"][0])
    predicted = p.argmax(1)
    assert found["accuracy"] == pytest.approx(reference.accuracy_score(true, predicted))
    assert found["f1"] == pytest.approx(
        reference.f1_score(true, predicted, average="macro")
    )
    top = reference.top_k_accuracy_score(true, p, k=5, labels=range(10))
    assert found["top_k"] == pytest.approx(top)


def test_the_loss_is_that_of_the_study_and_lowers_it(session):
    one, before = measured(session, "unet", "mirrored", 2)
    records = list(one.epoch_records())
    assert records[-1].validation.keys() == before.keys()
    assert records[-1].loss < records[0].loss
    assert one.trainer.metrics[0] == "dice" and one.trainer.sense[:2] == (
        "higher",
        True,
    )


def test_class_weights_of_a_run_multiply_its_loss(session, sets):
    plain = session("cnn", loss="cross_entropy")
    rows = plain.split.validation
    weights = tuple(np.linspace(0.1, 3, 10).tolist())
    weighted = session("cnn", class_weights=weights, weights=weights)
    true, p = validation_outputs(plain, sets["cnn"][0])
    losses = -np.log(p[np.arange(len(true)), true])
    assert plain.measure(rows)["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert weighted.measure(rows)["loss"] == pytest.approx(
        (np.array(weights)[true] * losses).mean(), rel=1e-5
    )
