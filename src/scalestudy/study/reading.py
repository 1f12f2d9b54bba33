"""Reading a record: sound, missing, corrupt and newer than this version are different words."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from scalestudy.files import contents, write_atomically
from scalestudy.seals import BrokenSeal, checked, loaded, sealed, without_seal

Word = Literal["sound", "without checksum", "missing", "corrupt", "newer"]
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Found(Generic[Model]):
    """What a record's file was found to be.

    Attributes:
        word: "sound", "without checksum" (an older one), "missing", "corrupt" (truncated, altered, or not to
            be read), or "newer" (written by a later version, in a schema that this one does not know).
        record: What it holds; None unless it is sound or without checksum.
        why: What is wrong with a corrupt or newer one, naming the file; "" otherwise.
    """

    word: Word
    record: Model | None = None
    why: str = ""

    @property
    def damaged(self) -> bool:
        """Whether there is a file, and it cannot be gone by."""
        return self.word in ("corrupt", "newer")


def read_record(path: Path, kind: type[Model]) -> Found[Model]:
    """Read a JSON record of this kind; whatever is in its place, nothing is raised."""
    try:
        data = contents(path)
    except FileNotFoundError:
        return Found("missing")
    except OSError as error:
        return Found("corrupt", why=f"{path.name} cannot be read: {error.strerror or error}")
    return parse_record(data, kind, path.name)


def parse_record(data: bytes, kind: type[Model], name: str) -> Found[Model]:
    """Read the bytes of a record; `name` is that of its file, for messages."""
    try:
        table = loaded(data)
        # First, since a later version may have another kind of checksum.
        version = table.get("schema_version")
        if isinstance(version, int) and version > schema_of(kind):
            return Found(
                "newer", why=f"{name} is of schema {version}, and this version knows {schema_of(kind)}"
            )
        had = checked(data, table)
    except BrokenSeal as error:
        return Found("corrupt", why=f"{name}: {error}")
    try:
        record = kind.model_validate_json(without_seal(data, table) if had else data)
    except (ValidationError, ValueError, RecursionError) as error:
        return Found("corrupt", why=f"{name}: {_first(error)}")
    return Found("sound" if had else "without checksum", record)


def write_record(path: Path, record: BaseModel, *, durable: bool = True) -> None:
    """Write a record with its checksum, atomically.

    Raises:
        OSError: It cannot be written.
    """
    write_atomically(path, sealed(record.model_dump_json()), durable=durable)


def schema_of(kind: type[BaseModel]) -> int:
    """The newest schema of a kind of record that this version knows; 1 for those that never had another."""
    field = kind.model_fields.get("schema_version")
    return 1 if field is None else int(field.default)


def _first(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
