"""`python -m scalestudy.tasks.build FILE INFO`: build a user's model once, with network access, and try it.

Afterwards pretrained weights are in Keras's cache (KERAS_HOME), so no worker has to download them. A model
that cannot be saved or does not fit its data is refused here, before a job waits in a queue. INFO is JSON:
`prepared` (folder of the data set), `train` (training settings) and `engine`. Prints
{"notes": […]}, likely mistakes, or an error. Without `prepared` nothing is built: only what needs no data is
checked.
"""

import contextlib
import json
import os
import sys
import tempfile
from typing import Any

from scalestudy.cluster.worker_environment import process_environment
from scalestudy.data.child import answer
from scalestudy.data.store.prepared import Prepared
from scalestudy.plugins.engines import DEFAULT, engine_traits
from scalestudy.tasks.task_file import FETCHED_WITHIN, limit_time, remedy
from scalestudy.util.modules import without_unused
from scalestudy.util.registry import loaded


def build(path: str, info: str) -> dict[str, Any]:
    """Build and try the model; errors of the file propagate."""
    settings = json.loads(info)
    engine = engine_traits(settings.get("engine", DEFAULT))
    os.environ.update(process_environment(os.environ, engine, gpus=(), quiet=True).values)
    with without_unused(engine.unused):
        from scalestudy.config.catalog import is_ours, task_defaults
        from scalestudy.config.settings import ResolvedTrain, TrainSettings
        from scalestudy.tasks.load import module_of, refuse_incomplete, task_of
        from scalestudy.tasks.task import DataInfo
        from scalestudy.tasks.task_trial import (
            forward,
            note_on_weights,
            notes_on,
            prove_savable,
            refuse_weights,
            try_task,
        )

    train = settings.get("train")
    resolved = (
        task_defaults(path).complete_train(TrainSettings())
        if train is None
        else ResolvedTrain.model_validate(train)
    )
    limit_time()
    module = module_of(path)
    refuse_incomplete(module, resolved)
    if "prepared" not in settings:
        return {"notes": []}
    prepared = Prepared.open(settings["prepared"])
    data = DataInfo.of(prepared)
    limit_time(FETCHED_WITHIN)
    task = task_of(module, data, resolved)
    refuse_weights(task, path, resolved.weights)
    # A full temporary folder is no error of the model: suppress OSError.
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory() as folder:
        prove_savable(task.model, f"{folder}/model.keras", task.definitions)
    if is_ours(path):
        return {"notes": []}
    outputs = forward(task, prepared, path)
    notes = notes_on(module, task, prepared, outputs)
    notes += note_on_weights(lambda: task_of(module_of(path), data, resolved).model, path)
    try_task(loaded(engine.implementation), task, prepared, outputs, path)
    return {"notes": notes}


if __name__ == "__main__":
    answer(lambda _: build(*sys.argv[1:3]), f"a task file that works: {sys.argv[1]}", remedy)
