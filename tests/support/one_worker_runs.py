"""One-worker runs with given epoch times."""

import synthetic
from scalestudy.features.advise.step_model import one_worker
from scalestudy.store.records import EpochRecord


def timed(seconds, *, batch=16, samples=160, seed=0, waited=0.0, resumed=()):
    """A run with these epoch times."""
    run = synthetic.run("horovod", 1, seed, epochs=len(seconds), samples=samples)
    records = tuple(
        EpochRecord(
            epoch=number,
            steps=-(-samples // batch),
            samples=samples,
            learning_rate=0.1,
            loss=1.0,
            train_seconds=spent,
            input_seconds=waited * spent,
            evaluation_seconds=0.5,
            elapsed_training_seconds=1.0,
            resumed=number in resumed,
        )
        for number, spent in enumerate(seconds, start=1)
    )
    result = run.result.model_copy(update={"per_worker_batch": batch, "global_batch": batch})
    return synthetic.Run(result, records)


def one(runs, epochs=10, steps=None):
    return one_worker(runs, per_worker_rule=True, epochs=epochs, steps=steps)
