"""Task of the soak: a small network that reports each phase it reaches, and pauses there on request.

Reports and requests are files in the folder `PLACE`, whose path the soak fills in.
"""

import os
import time
from pathlib import Path

import keras

PLACE = Path("@PLACE@")
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]


def reach(phase):
    """Report the phase of this rank, execute a planted line, and wait while a hold file exists."""
    rank = os.environ.get("RANK", os.environ.get("SLURM_PROCID", "launcher"))
    (PLACE / f"reached-{phase}-{rank}").touch()
    if rank == "launcher":  # the launcher builds the model once before all runs
        return
    while (PLACE / f"hold-{phase}").exists():
        time.sleep(0.02)
    planted = PLACE / f"do-{phase}-{rank}"
    if planted.exists():
        words = planted.read_text()
        planted.unlink()
        exec(words, {"os": os})


class Says(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            reach("epoch")

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            reach("checkpoint")

    def on_train_end(self, logs=None):
        reach("end")


def model(data):
    reach("build")
    inputs = keras.Input(data.input_shape)
    x = keras.layers.Flatten()(inputs)
    x = keras.layers.BatchNormalization()(keras.layers.Dense(16, activation="relu")(x))
    return keras.Model(
        inputs, keras.layers.Dense(data.classes, activation="softmax")(x)
    )


def callbacks():
    return [Says()]


def reach_within():
    """Report evaluation, and the moment when a checkpoint is written but not yet renamed."""
    from scalestudy.training import checkpoint_consensus, session

    measure, replace = session.measure, os.replace

    def measured(*of):
        reach("evaluation")
        return measure(*of)

    def replaced(source, target):
        if Path(target).name == "checkpoint.npz":
            reach("saving")
        replace(source, target)

    session.measure, os.replace, checkpoint_consensus.KEEP_EVERY = (
        measured,
        replaced,
        0.0,
    )


reach("import")
if "RANK" in os.environ or "SLURM_PROCID" in os.environ:
    reach_within()
