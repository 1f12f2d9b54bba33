"""What an environment was built from: looked at now, recorded in it, or as it was recorded before."""

import sys
from dataclasses import dataclass
from pathlib import Path

from scalestudy.hardware.built import RECORD_FILE, Built, describe, describe_other, read_record
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically


@dataclass(frozen=True)
class EnvironmentRecord:
    """An environment's description.

    Attributes:
        prefix: Its folder.
        built: What it was built from: as recorded, where that is still so; else as it is seen now.
        unrecorded: Why nothing recorded could be taken, as "was never recorded"; "" where it was.
    """

    prefix: Path
    built: Built
    unrecorded: str = ""


def environment_record(path: Path | None = None, *, record: bool = False) -> EnvironmentRecord:
    """Describe an environment.

    Args:
        path: Folder of a virtual environment; None for this one.
        record: Whether to look at everything anew, the framework's builds too, and keep it there.

    Raises:
        UserError: There is no environment with Scalestudy in the folder, or it cannot be written to.
    """
    prefix = Path(sys.prefix) if path is None else Path(path).expanduser()
    here = prefix.resolve() == Path(sys.prefix).resolve()
    now = describe(builds=record) if here else describe_other(prefix, builds=record)
    if record:
        _write(prefix, now)
        return EnvironmentRecord(prefix, now)
    kept = read_record(prefix)
    if kept is None:
        return EnvironmentRecord(prefix, now, "was never recorded")
    if kept.id != now.id:
        return EnvironmentRecord(prefix, now, f"has changed since it was recorded as {kept.id}")
    # The id leaves our own commit open.
    return EnvironmentRecord(prefix, kept.model_copy(update={"packages": now.packages}))


def _write(prefix: Path, built: Built) -> None:
    try:
        write_atomically(prefix / RECORD_FILE, built.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise UserError(
            "an environment that can be written to",
            f"{prefix}: {error.strerror}",
            "Record it as its owner, or leave --record out.",
        ) from error
