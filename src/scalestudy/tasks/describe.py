"""`python -m scalestudy.tasks.describe FILE`: what a user's task file says of its data, as JSON.

Runs in a process of its own, so that the command line stays free of the deep-learning framework.
"""

import sys
from pathlib import Path
from typing import Any

from scalestudy.tasks import asked
from scalestudy.tasks.answer import answer
from scalestudy.tasks.file import import_file


def describe(path: str) -> dict[str, Any]:
    """{"data": source or None, "kind": kind or None}; raises what the file raises."""
    asked.begin()
    asked.users_code()
    module = import_file(Path(path))
    return {"data": getattr(module, "data", None), "kind": getattr(module, "kind", None)}


if __name__ == "__main__":
    answer(sys.argv[1], lambda: describe(sys.argv[1]))
