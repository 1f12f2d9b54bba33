"""`python -m scalestudy.tasks.weights FILE INFO`: build a user's model once, with the network allowed.

Pretrained weights are then where Keras keeps them (KERAS_HOME), and no worker needs to download them.
INFO is JSON: what `DataInfo` holds. Prints {"parameters": N}, or why it cannot be built.
"""

import json
import os
import sys

from scalestudy.cluster.environment import QUIET, process_environment
from scalestudy.imports import without_unused
from scalestudy.tasks import asked
from scalestudy.tasks.answer import answer


def parameters(path: str, info: str) -> dict[str, int]:
    """Build it, and count its parameters; raises what the file raises."""
    asked.begin()
    os.environ.update(process_environment(os.environ, gpus=(), messages=QUIET).values)
    with without_unused():
        from scalestudy.tasks.base import DataInfo
        from scalestudy.tasks.load import load_task

    data = json.loads(info)
    data["input_shape"] = tuple(data["input_shape"])
    asked.users_code()
    return {"parameters": load_task(path, DataInfo(**data)).model.count_params()}


if __name__ == "__main__":
    answer(sys.argv[1], lambda: parameters(*sys.argv[1:3]))
