"""`python -m scalestudy.tasks.weights FILE INFO`: build a user's model once, with the network allowed.

Pretrained weights are then where Keras keeps them (KERAS_HOME), and no worker needs to download them.
INFO is JSON: what `DataInfo` holds. Prints {"parameters": N}, or why it cannot be built.
"""

import json
import os
import sys

from scalestudy.cluster.environment import QUIET, process_environment
from scalestudy.errors import ScalestudyError
from scalestudy.imports import without_unused
from scalestudy.tasks import asked


def main(path: str, info: str) -> int:
    """Build it; 2 if that fails."""
    asked.begin()
    os.environ.update(process_environment(os.environ, gpus=(), messages=QUIET).values)
    with without_unused():
        from scalestudy.tasks.base import DataInfo
        from scalestudy.tasks.load import load_task

    data = json.loads(info)
    data["input_shape"] = tuple(data["input_shape"])
    asked.users_code()
    try:
        model = load_task(path, DataInfo(**data)).model
    except ScalestudyError as error:
        print(json.dumps({"expected": error.expected, "received": error.received, "action": error.action}))
        return 2
    print(json.dumps({"parameters": model.count_params()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
