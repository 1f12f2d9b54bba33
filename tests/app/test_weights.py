"""Errors found by building a model before the first run."""

import pytest

from data_settings import data_of
from scalestudy.app.listener import Listener
from scalestudy.app.weights import fetch_weights
from scalestudy.data.store.prepare import prepare
from scalestudy.study.settings import ResolvedTrain
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine


def test_frozen_epochs_of_a_task_without_pretrained_layers_are_refused_before_the_start(tmp_path):
    prepared = prepare(data_of("digits", cache=tmp_path))
    train = ResolvedTrain(
        epochs=2, batch_size=8, optimizer="adam", learning_rate=0.1, schedule="constant", frozen_epochs=1
    )
    with pytest.raises(UserError, match="a task with pretrained layers"):
        fetch_weights("cnn", "tensorflow", train, str(prepared.path), Listener())
