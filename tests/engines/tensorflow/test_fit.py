"""Several workers compute the same numbers as Keras's own `fit`, for any arguments."""

import inspect
import random
from collections import Counter
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from scalestudy.data.samples import Slice
from scalestudy.engines.group import join
from scalestudy.engines.keras.layer_context import Working, working
from scalestudy.engines.keras.private import epoch_iterator, seed_generators
from scalestudy.engines.tensorflow.fit_rows import WorkerRows
from scalestudy.engines.tensorflow.fit_session import FitSession, warn_of_moving_statistics
from scalestudy.engines.tensorflow.fit_step import part_of
from scalestudy.engines.tensorflow.tensorflow_layers import shared_layers
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

ROUNDING = {"rtol": 2e-5, "atol": 2e-6}
rng = np.random.default_rng(0)
X = rng.random((23, 6)).astype("float32")
Y = rng.integers(0, 3, 23)
WEIGHTS = rng.random(23).astype("float32")
TOKENS = np.where(np.arange(7) < rng.integers(2, 7, (23, 1)), rng.integers(1, 11, (23, 7)), 0)


@pytest.fixture(scope="module")
def session(framework, placement):
    """Three workers, computed in turn on one device."""
    return FitSession(join("virtual", placement, workers=3, device="cpu"))


def classifier(optimizer="adam", loss="sparse_categorical_crossentropy", between=(), **words):
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(8, activation="tanh", kernel_regularizer="l2"),
            *between,
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile(optimizer, loss, **words)
    return model


def both(session, make, *data, per_worker=False, mine=None, **arguments):
    """Return model and history of Keras alone, and those of the workers."""
    found = []
    for more in (None, mine or {}):
        keras.utils.set_random_seed(3)
        model = make()
        own = {"epochs": 2, "verbose": 0, **arguments}
        own["callbacks"] = [make_callback() for make_callback in own.get("callbacks", ())]
        given = [each() if inspect.isfunction(each) else each for each in data]
        if more is None:
            history = model.fit(*given, **own)
        else:
            history = session.fit(model, *given, per_worker=per_worker, **own | more)
        found.append((model, history))
    return found


def assert_same(found):
    (model, history), (ours, our_history) = found
    assert list(history.history) == list(our_history.history)
    assert history.epoch == our_history.epoch
    for name, values in history.history.items():
        np.testing.assert_allclose(our_history.history[name], values, **ROUNDING, err_msg=name)
    for one, other in zip(model.get_weights(), ours.get_weights(), strict=True):
        np.testing.assert_allclose(other, one, **ROUNDING)
    for one, other in zip(model.optimizer.variables, ours.optimizer.variables, strict=True):
        np.testing.assert_allclose(np.asarray(other.value), np.asarray(one.value), **ROUNDING)


def test_shuffling_dropout_normalisation_weights_validation_and_rates_are_those_of_keras(session):
    drawn = []

    def make():
        between = [
            keras.layers.BatchNormalization(synchronized=True),
            keras.layers.Dropout(0.3),
            keras.layers.GaussianNoise(0.2),
            keras.layers.GaussianDropout(0.1),
            keras.layers.AlphaDropout(0.1),
            keras.layers.Dropout(0.1, noise_shape=(None, 1)),
            keras.layers.Reshape((4, 2)),
            keras.layers.SpatialDropout1D(0.2),
            keras.layers.Flatten(),
        ]
        return classifier(between=between, metrics=["accuracy"], weighted_metrics=["accuracy"])

    class Falling(keras.callbacks.LearningRateScheduler):
        def __init__(self):
            super().__init__(lambda epoch, _: 0.1 / (epoch + 1))

        def on_train_end(self, logs=None):
            drawn.append(random.random())

    assert_same(
        both(
            session,
            make,
            X,
            Y,
            batch_size=8,
            shuffle=True,
            class_weight={0: 3.0, 1: 0.5},
            validation_split=0.2,
            validation_freq=2,
            callbacks=[Falling],
        )
    )
    assert drawn[0] == drawn[1]  # the script's random state is untouched


def seeds_of(layer, starts, draws=2):
    """Return the seeds that workers of a step, computed in turn, use in a shared layer."""
    (generator,) = seed_generators(layer)
    model, seeds = keras.Sequential([layer]), []
    with shared_layers(model):
        for number, start in enumerate(starts):
            part = Slice(None, None, tf.constant(start, tf.int64), 4, 8, first=tf.constant(number == 0))
            with working(Working(part, 1.0, calls=Counter())):
                seeds += [tuple(np.asarray(generator.next()).tolist()) for _ in range(draws)]
    return seeds


def test_layers_whose_noise_is_not_shared_draw_by_seeds_of_each_worker(framework):
    layer = keras.layers.RandomFlip(seed=5)
    first, second = seeds_of(layer, (0, 4, 8)), seeds_of(layer, (0, 4, 8))
    assert first[0] == (5, 0)  # as in Keras
    assert len({*first, *second}) == 12
    other = keras.layers.RandomFlip(seed=5)
    assert seeds_of(other, (4,))[:1] == [first[2]]  # the same in turn or in another process
    kept = keras.layers.RandomFlip(seed=5)
    kept(np.zeros((2, 4, 4, 3), "float32"), training=True)

    (generator,) = seed_generators(kept)
    assert "next" not in vars(generator)


def test_several_outputs_from_a_dataset_have_the_losses_that_keras_adds_up(session, framework):
    def make():
        one, two = keras.Input((6,), name="one"), keras.Input((6,), name="two")
        joined = keras.layers.Concatenate()([one, two])
        outputs = {
            "kind": keras.layers.Dense(3, activation="softmax", name="kind")(joined),
            "size": keras.layers.Dense(6, name="size")(joined),
        }
        model = keras.Model({"one": one, "two": two}, outputs)
        losses = {"kind": "sparse_categorical_crossentropy", "size": "mse"}
        model.compile("sgd", losses, loss_weights={"kind": 1.0, "size": 0.5}, metrics={"kind": ["accuracy"]})
        return model

    rows = framework.data.Dataset.from_tensor_slices(({"one": X, "two": X + 1}, {"kind": Y, "size": X}))
    found = both(session, make, rows.take(20).batch(10), shuffle=False)
    assert {"kind_loss", "size_loss"} <= set(found[0][1].history)
    assert_same(found)


@pytest.mark.parametrize("divided", ["by rows", "by weights", "by a mask"])
def test_the_parts_that_workers_have_in_a_loss_add_up_to_kerass(framework, divided):
    reduction = "mean_with_sample_weight" if divided == "by weights" else "sum_over_batch_size"
    loss = keras.losses.SparseCategoricalCrossentropy(reduction=reduction)
    if divided == "by a mask":
        first, inputs, targets = [keras.layers.Embedding(11, 4, mask_zero=True)], TOKENS, TOKENS % 3
    else:
        first, inputs, targets = [], X, Y
    weights = WEIGHTS if divided == "by weights" else None
    model = keras.Sequential([*first, keras.layers.Dense(3, activation="softmax")])

    def part(rows, sync_sum):
        worker = Working(Slice({}, {}, 0, len(inputs[rows]), len(inputs)), 1.0, sync_sum)
        used = None if weights is None else weights[rows]
        return part_of(loss, worker)(targets[rows], model(inputs[rows]), used)

    expected = loss(targets, model(inputs), sample_weight=weights)
    divisors, halves = [], (slice(0, 9), slice(9, 23))
    for rows in halves:
        part(rows, lambda own: divisors.append(own) or own)
    total = sum(float(part(rows, lambda own: sum(divisors))) for rows in halves)
    np.testing.assert_allclose(total, float(expected), rtol=1e-6)


def test_a_stream_whose_length_is_not_known_is_shared_batch_by_batch(session):
    def rows():
        while True:
            for start in range(0, 23, 6):
                yield X[start : start + 6], Y[start : start + 6]

    make = partial(classifier, steps_per_execution=2)
    assert_same(both(session, make, rows, steps_per_epoch=4, shuffle=False))


@pytest.mark.parametrize("known", [True, False], ids=["known length", "unknown length"])
def test_a_stream_that_is_shuffled_anew_comes_in_keras_own_order_in_every_epoch(framework, known):
    """If its length is known, Keras makes two iterators per epoch, and each of them shuffles anew."""
    from keras.src.backend.tensorflow.trainer import TFEpochIterator

    def orders(iterator):
        keras_own = isinstance(iterator, TFEpochIterator)
        taken = []
        for _ in range(3):
            steps = []
            with iterator.catch_stop_iteration():
                for _, _, data in iterator.enumerate_epoch():
                    rows = next(data) if keras_own else data[0].call[0].inputs["0"]
                    steps.append(np.asarray(rows).tolist())
            taken.append(steps)
            iterator.reset()
        return taken

    def rows():
        dataset = framework.data.Dataset.range(12).shuffle(12, seed=4).batch(4)
        return dataset if known else dataset.filter(lambda row: True)

    keras.utils.set_random_seed(0)
    expected = orders(TFEpochIterator(x=rows(), distribute_strategy=framework.distribute.get_strategy()))
    keras.utils.set_random_seed(0)
    shared = epoch_iterator(x=rows())
    _, replicas = join("single", None, workers=1, device="cpu")
    shared.data_adapter = WorkerRows(shared.data_adapter, replicas)
    shared.reset()
    assert orders(shared) == expected


def test_a_batch_of_each_worker_is_a_part_of_one_that_is_as_many_times_as_large(session, framework):
    rows = framework.data.Dataset.from_tensor_slices((X, Y)).batch(3)
    words = {"shuffle": False, "batch_size": 9}
    assert_same(both(session, classifier, X, Y, per_worker=True, mine={"batch_size": 3}, **words))

    keras.utils.set_random_seed(3)
    streamed = classifier()
    session.fit(streamed, rows, per_worker=True, epochs=2, shuffle=False, verbose=0)
    keras.utils.set_random_seed(3)
    whole = classifier()
    whole.fit(X, Y, epochs=2, verbose=0, **words)
    for one, other in zip(whole.get_weights(), streamed.get_weights(), strict=True):
        np.testing.assert_allclose(other, one, **ROUNDING)


def test_callbacks_stop_within_an_epoch_and_set_weights_as_under_keras(session):
    heard = []

    class Own(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            heard.append((batch, float(logs["loss"])))
            self.model.stop_training |= self.epoch == 2 and batch == 1

        def on_epoch_begin(self, epoch, logs=None):
            self.epoch = epoch

        def on_epoch_end(self, epoch, logs=None):
            self.model.set_weights([0.5 * weight for weight in self.model.get_weights()])

    found = both(session, classifier, X, Y, batch_size=8, epochs=5, callbacks=[Own])
    assert_same(found)
    half = len(heard) // 2
    np.testing.assert_allclose(heard[:half], heard[half:], **ROUNDING)
    assert [batch for batch, _ in heard[:half]] == [0, 1, 2, 0, 1, 2, 0, 1]


def test_a_model_is_fitted_again_after_it_was_compiled_anew_and_is_kerass_own_afterwards(session, tmp_path):
    keras.utils.set_random_seed(3)
    model = classifier()
    session.fit(model, X, Y, per_worker=False, verbose=0)
    model.layers[0].trainable = False
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    before = [weight.copy() for weight in model.layers[0].get_weights()]
    session.fit(model, X, Y, per_worker=False, verbose=0)
    assert all(map(np.array_equal, before, model.layers[0].get_weights()))

    ours = session.evaluate(model, X, Y, per_worker=False, verbose=0, batch_size=5)
    np.testing.assert_allclose(ours, model.evaluate(X, Y, verbose=0), **ROUNDING)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))
    model.fit(X, Y, verbose=0)


def test_what_cannot_be_shared_is_refused_by_name(session):
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(3, activation="softmax")

        def call(self, inputs):
            return self.dense(inputs)

        def train_step(self, data):
            return {}

    own = Own()
    own.compile("sgd", "sparse_categorical_crossentropy")
    for model, words in (
        (keras.Sequential([keras.layers.Dense(1)]), "model.compile"),
        (classifier(run_eagerly=True), "run_eagerly=True"),
        (own, "Own with its own train_step"),
    ):
        with pytest.raises(UserError, match=words):
            session.fit(model, X, Y, per_worker=False, verbose=0)


@pytest.mark.parametrize(("updates", "told"), [(54, "58 %"), (460, None)])
def test_a_training_too_short_for_its_moving_statistics_is_warned_of(capsys, updates, told):
    model = classifier(between=[keras.layers.BatchNormalization()])
    model.optimizer.iterations.assign(updates)
    warn_of_moving_statistics(model)
    printed = capsys.readouterr().out
    assert (f"{updates} updates" in printed and told in printed) if told else not printed
