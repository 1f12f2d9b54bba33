"""`python -m scalestudy.tasks.describe FILE`: what a user's task file says of its data, as JSON.

Runs in a process of its own, so that the command line stays free of the deep-learning framework.
"""

import json
import sys
from pathlib import Path

from scalestudy.errors import ScalestudyError
from scalestudy.tasks import asked
from scalestudy.tasks.file import import_file


def main(path: str) -> int:
    """Print {"data": source or null, "kind": kind or null}; 2 if the file cannot be imported."""
    asked.begin()
    asked.users_code()
    try:
        module = import_file(Path(path))
    except ScalestudyError as error:
        print(json.dumps({"expected": error.expected, "received": error.received, "action": error.action}))
        return 2
    print(json.dumps({"data": getattr(module, "data", None), "kind": getattr(module, "kind", None)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
