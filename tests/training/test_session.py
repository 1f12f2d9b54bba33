"""The training loop: exact, repeatable, and independent of how calls and workers divide it."""

import numpy as np
import pytest

from scalestudy.util.errors import RunError

pytestmark = pytest.mark.engine


def trained(session) -> tuple[list, list[np.ndarray]]:
    records = list(session.epoch_records())
    return records, session.trainer.state.weights()[0]


def largest_difference(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("task", ["cnn", "unet"])
def test_a_run_repeats_bit_for_bit_and_another_seed_gives_other_weights(session, task):
    digests = []
    for seed in (0, 0, 1):
        one = session(task, seed=seed)
        list(one.epoch_records())
        digests.append(set(one.digests()))
    first, again, other = digests
    assert first == again != other and len(first) == 1


def test_compiling_ahead_leaves_no_trace_in_the_weights(session):
    plain, ahead = session("unet"), session("unet")
    ahead.compile()
    _, expected = trained(plain)
    _, found = trained(ahead)
    assert largest_difference(expected, found) == 0


@pytest.mark.parametrize("steps", [2, 3, 100])
def test_steps_per_call_do_not_change_the_weights(session, steps):
    _, one_by_one = trained(session(steps_per_call=1))
    _, together = trained(session(steps_per_call=steps))
    assert largest_difference(one_by_one, together) == 0


def test_records_tell_what_was_really_processed(session):
    records, _ = trained(session(batch_size=50, epochs=3))
    assert [(record.epoch, record.steps, record.samples) for record in records] == [
        (1, 3, 120),
        (2, 3, 120),
        (3, 3, 120),
    ]
    assert records[-1].elapsed_training_seconds == pytest.approx(
        sum(record.train_seconds for record in records)
    )
    assert all(0 <= record.input_seconds <= record.train_seconds for record in records)
    assert records[-1].loss < records[0].loss


def test_the_validation_set_is_evaluated_whole_by_any_number_of_workers(session):
    def evaluated(implementation: str, workers: int) -> dict[str, float]:
        one = session("unet", implementation, workers, batch_size=7)
        return one.measure(one.split.validation)

    alone = evaluated("single", 1)
    for implementation, workers in (("mirrored", 2), ("virtual", 14)):
        found = evaluated(implementation, workers)
        assert found["iou"] == alone["iou"]
        assert found["loss"] == pytest.approx(alone["loss"], rel=1e-6)


def test_epochs_between_evaluations_have_no_validation_but_the_last_has(session):
    records, _ = trained(session(epochs=4, evaluate_every=3))
    assert [bool(record.validation) for record in records] == [False, False, True, True]


@pytest.mark.parametrize("optimizer", ["sgd", "nesterov", "adam", "adamw"])
def test_every_optimizer_gives_two_workers_the_weights_of_one(session, optimizer):
    _, one = trained(
        session(optimizer=optimizer, learning_rate=0.002, precision="float64")
    )
    for implementation in ("mirrored", "virtual"):
        other = session(
            "cnn",
            implementation,
            2,
            optimizer=optimizer,
            learning_rate=0.002,
            precision="float64",
        )
        _, two = trained(other)
        assert largest_difference(one, two) < 1e-9


def test_a_schedule_and_a_warmup_reach_the_optimizer(session):
    one = session(schedule="linear", warmup_epochs=1.5, epochs=2, batch_size=60)
    records, _ = trained(one)
    assert [record.learning_rate for record in records] == pytest.approx(
        [one.rates[1], one.rates[3]]
    )


def test_the_rate_is_scaled_by_the_workers_only_when_the_batch_grows_with_them(session):
    per_worker = session(
        "cnn",
        "virtual",
        4,
        batch="per-worker",
        batch_size=10,
        learning_rate_scaling="linear",
    )
    common = session(
        "cnn",
        "virtual",
        4,
        batch="global",
        batch_size=40,
        learning_rate_scaling="linear",
    )
    reference = session(
        "cnn", "virtual", 4, batch="global", batch_size=40, reference_batch=10
    )
    assert [s.rates[0] for s in (per_worker, common, reference)] == pytest.approx(
        [0.2, 0.05, 0.2]
    )


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize(
    ("implementation", "workers"), [("single", 1), ("mirrored", 2), ("virtual", 2)]
)
def test_mixed_precision_learns_with_weights_in_float32(
    session, precision, implementation, workers
):
    one = session("cnn", implementation, workers, precision=precision, epochs=3)
    records, weights = trained(one)
    assert {weight.dtype for weight in weights} == {np.dtype("float32")}
    assert records[-1].loss < records[0].loss


def test_a_float16_overflow_leaves_a_step_out_on_all_workers_and_halves_the_scale(
    session,
):
    for implementation, workers in (("single", 1), ("mirrored", 2)):
        one = session(
            "cnn", implementation, workers, precision="mixed_float16", epochs=1
        )
        one.trainer.loss_scale.value.assign(2.0**40)
        before = one.trainer.state.weights()[0]
        float(one.trainer.train(one._loader.read(one.split.train, [(0, 25)])))
        assert float(one.trainer.loss_scale.value.numpy()) == 2.0**39
        after = one.trainer.state.weights()[0]
        assert largest_difference(before, after) == 0


def test_what_cannot_repeat_ends_a_run_with_the_key_to_change(session, framework):
    one = session()
    call = one._loader.read(one.split.train, [(0, 25)])
    one.trainer._evaluation._compute = lambda call: [framework.timestamp()]
    one.trainer._train = [one.trainer._evaluation._compute]
    for compute in (one.trainer.train, one.trainer.evaluate):
        with pytest.raises(
            RunError, match=r"Timestamp .* Set deterministic = false under \[train\]"
        ):
            compute(call)
