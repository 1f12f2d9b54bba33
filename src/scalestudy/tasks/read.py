"""`python -m scalestudy.tasks.read ASKED`: run `read(data)` of a Python file, and store what it gives.

ASKED is JSON: see `data.sources.custom.CustomSource.write`. Prints how far it is, a line of JSON
each time, then why it could not go on.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from scalestudy.cluster.environment import process_environment
from scalestudy.data.store.write_custom import How, write_custom
from scalestudy.hardware.parent import end_with
from scalestudy.study.engines import DEFAULT, engine_traits
from scalestudy.study.settings import DataSettings
from scalestudy.tasks.file import import_file
from scalestudy.tasks.given import length_of, parts_of
from scalestudy.util.errors import ScalestudyError, UserError
from scalestudy.util.tracebacks import told

EVERY = 0.2
"""Seconds between two lines that say how far it is."""


def store(asked: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> None:
    """Read and write; raises what the file raises."""
    module = import_file(Path(asked["file"]))
    data = DataSettings.model_validate(asked["data"])
    given = _called(module.read, data, asked["file"])
    said, count = 0.0, length_of(given)

    def on_progress(done: int) -> None:
        nonlocal said
        if time.monotonic() - said > EVERY:
            said = time.monotonic()
            say({"done": done, "all": count or 0})

    how = How(
        getattr(module, "sequences", ()),
        getattr(module, "vocabularies", {}),
        getattr(module, "class_names", ()),
    )
    write_custom(
        parts_of(given), how, Path(asked["folder"]), identity=asked["identity"],
        fingerprint=asked["fingerprint"], on_progress=on_progress,
    )  # fmt: skip


def _called(read: Any, data: DataSettings, file: str) -> Any:
    try:
        return read(data)
    except TypeError as error:
        traceback = error.__traceback__
        if traceback is not None and traceback.tb_next is None:  # the call itself did not fit
            raise UserError(
                f"`read(data)` in {file}: a function of the section [data]",
                f"one that cannot be called so: {error}",
                "Take one argument; data.source, data.seed and data.image_size are known of it.",
            ) from error
        raise


def main(text: str) -> NoReturn:
    """Store what is asked for, and end: 0, or 2 if that cannot be done."""
    asked = json.loads(text)
    end_with(asked["parent"])
    os.environ.update(process_environment(os.environ, engine_traits(DEFAULT), gpus=(), quiet=True).values)

    def say(what: dict[str, Any]) -> None:
        sys.stdout.write(f"\n{json.dumps({'scalestudy': what})}\n")
        sys.stdout.flush()

    code = 2
    try:
        store(asked, say)
        code = 0
    except ScalestudyError as error:
        say({"expected": error.expected, "received": error.received, "action": error.action})
    except OSError as error:
        # Whether of the file's own or of the cache folder, it says where it was raised.
        say(_failed(asked["file"], error, "Make what it reads be there, and space in the cache folder."))
    except (Exception, SystemExit) as error:
        say(_failed(asked["file"], error, "Correct it; `python` on the file, with read called, shows more."))
    os._exit(code)


def _failed(file: str, error: BaseException, action: str) -> dict[str, str]:
    return {"expected": f"read(data) of {file} to give samples", "received": told(error), "action": action}


if __name__ == "__main__":
    main(sys.argv[1])
