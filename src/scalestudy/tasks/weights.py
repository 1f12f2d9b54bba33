"""`python -m scalestudy.tasks.weights FILE INFO`: build a user's model once, network allowed, and try it.

Pretrained weights are then where Keras keeps them (KERAS_HOME), and no worker needs to download them. A model
that could not be saved, or does not fit its data, is refused here, before a job waits in a queue for it.
INFO is JSON: {"prepared": FOLDER} of the data set. Prints {"parameters": N, "notes": […]}, or what is wrong.
"""

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from scalestudy.cluster.environment import QUIET, process_environment
from scalestudy.data.prepared import Prepared
from scalestudy.imports import without_unused
from scalestudy.tasks import asked
from scalestudy.tasks.answer import answer
from scalestudy.tasks.file import import_file


def built(path: str, info: str) -> dict[str, Any]:
    """Build it, try it, and count its parameters; raises what the file raises."""
    asked.begin()
    os.environ.update(process_environment(os.environ, gpus=(), messages=QUIET).values)
    with without_unused():
        from scalestudy.tasks.base import DataInfo
        from scalestudy.tasks.load import task_of
        from scalestudy.tasks.saving import prove_savable
        from scalestudy.tasks.trial import forward, try_task
        from scalestudy.tasks.trial_words import look_over

    prepared = Prepared.open(json.loads(info)["prepared"])
    asked.users_code()
    module = import_file(Path(path))
    task = task_of(module, DataInfo.of(prepared))
    # Whether there is room where a run is written, the run finds out.
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory() as folder:
        prove_savable(task.model, f"{folder}/model.keras", task.definitions)
    outputs = forward(task, prepared, path)
    notes = look_over(module, task, prepared, outputs)
    try_task(task, prepared, outputs, path)
    return {"parameters": task.model.count_params(), "notes": notes}


if __name__ == "__main__":
    answer(sys.argv[1], lambda: built(*sys.argv[1:3]))
