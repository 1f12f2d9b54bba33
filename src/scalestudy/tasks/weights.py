"""`python -m scalestudy.tasks.weights FILE INFO`: build a user's model once, with the network allowed.

Pretrained weights are then where Keras keeps them (KERAS_HOME), and no worker needs to download them. A model
that could not be saved is refused here, before a job waits in a queue for it.
INFO is JSON: what `DataInfo` holds, and `train`, how it is trained. Prints {"parameters": N}, or why it
cannot be built.
"""

import contextlib
import json
import os
import sys
import tempfile

from scalestudy.cluster.environment import QUIET, process_environment
from scalestudy.imports import without_unused
from scalestudy.tasks import asked
from scalestudy.tasks.answer import answer


def parameters(path: str, info: str) -> dict[str, int]:
    """Build it, and count its parameters; raises what the file raises."""
    asked.begin()
    os.environ.update(process_environment(os.environ, gpus=(), messages=QUIET).values)
    with without_unused():
        from scalestudy.study.settings import ResolvedTrain
        from scalestudy.tasks.base import DataInfo
        from scalestudy.tasks.load import load_task
        from scalestudy.tasks.saving import prove_savable

    data = json.loads(info)
    given = data.pop("train", None)
    train = None if given is None else ResolvedTrain.model_validate(given)
    data["input_shape"] = tuple(data["input_shape"])
    asked.users_code()
    task = load_task(path, DataInfo(**data), train)
    # Whether there is room where a run is written, the run finds out.
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory() as folder:
        prove_savable(task.model, f"{folder}/model.keras", task.definitions)
    return {"parameters": task.model.count_params()}


if __name__ == "__main__":
    answer(sys.argv[1], lambda: parameters(*sys.argv[1:3]))
