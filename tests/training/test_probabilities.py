"""Outputs of all kinds become probabilities of classes."""

import numpy as np
import pytest

from model_records import record
from scalestudy.training.gallery import are_logits, classes_of, probabilities
from scalestudy.util.errors import UserError

RANDOM = np.random.default_rng(0)


def test_one_channel_is_the_second_of_two_classes():
    outputs = RANDOM.random((2, 8, 8, 1)).astype(np.float32)
    found = probabilities(outputs, record(), logits=False)
    assert np.allclose(found[..., 1], outputs[..., 0])
    assert np.allclose(found.sum(-1), 1)
    assert np.array_equal(probabilities(outputs[..., 0], record(), logits=False), found)


def test_scores_become_probabilities():
    scores = RANDOM.normal(0, 5, (4, 3)).astype(np.float32)
    found = probabilities(scores, record("classes"), logits=True)
    expected = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert np.allclose(found, expected, atol=1e-6)
    one = probabilities(np.array([[0.0], [2.0]]), record("classes", class_names=["a", "b"]), logits=True)
    assert np.allclose(one[:, 1], [0.5, 1 / (1 + np.exp(-2))])


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ([[0.2, 0.8]], False),
        ([[0.2, 0.4]], True),
        ([[-1.0, 2.0]], True),
        ([[0.3]], False),
        ([[1.2]], True),
        ([[0.504, 0.5]], False),
    ],
)
def test_scores_are_told_from_probabilities(outputs, said):
    assert are_logits(np.array(outputs)) is said


@pytest.mark.parametrize("shape", [(2, 5), (2, 8, 8, 3), (2, 1)])
def test_outputs_that_are_not_of_the_classes_are_refused(shape):
    with pytest.raises(UserError, match="3 classes for each image"):
        probabilities(np.zeros(shape), record("classes"), logits=False)


def test_the_class_is_the_likeliest_and_one_half_is_the_second_of_two():
    assert classes_of(np.array([[0.5, 0.5], [0.51, 0.49]])).tolist() == [1, 0]
    assert classes_of(np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]])).tolist() == [2, 0]


def test_what_the_model_did_not_see_is_of_no_class():
    assert classes_of(np.array([[np.nan, np.nan], [0.1, 0.9]])).tolist() == [255, 1]
