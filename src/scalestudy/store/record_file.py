"""JSON records, written atomically and read without raising errors; checksums of files."""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from scalestudy.util.files import contents, open_regular, write_atomically

CHECKSUMS = "SHA256SUMS"
"""Checksums of a finished run's files, in the format of `sha256sum --check`."""
Word = Literal["sound", "missing", "corrupt"]
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class StoredRecord(Generic[Model]):
    """State of a record's file, its content if sound, and the error if corrupt."""

    word: Word
    record: Model | None = None
    why: str = ""
    newer: bool = False
    """Whether a newer version of Scalestudy wrote it, which is why it cannot be used."""

    @property
    def damaged(self) -> bool:
        """Whether the file exists but cannot be used."""
        return self.word == "corrupt"


def read_record(path: Path, kind: type[Model]) -> StoredRecord[Model]:
    """Read a JSON record of this kind."""
    try:
        data = contents(path)
    except FileNotFoundError:
        return StoredRecord("missing")
    except OSError as error:
        # Corrupt, not missing: whoever takes it for missing would start the run anew.
        why = f"{path.name} cannot be read: {error.strerror or error}"
        return StoredRecord("corrupt", why=why)
    return parse_record(data, kind, path.name)


def read_checked_record(path: Path, kind: type[Model]) -> StoredRecord[Model]:
    """Read a JSON record that is corrupt if it differs from its checksum in the folder, if there is one."""
    stored = read_record(path, kind)
    if stored.record is None:
        return stored
    # Damaged checksums are no damage of the record.
    with suppress(OSError, ValueError):
        recorded = read_checksums(path.parent).get(path.name)
        if recorded is not None and recorded != file_checksum(path):
            why = f"{path.name} differs from its checksum in {CHECKSUMS}"
            return StoredRecord("corrupt", why=why)
    return stored


def parse_record(data: bytes, kind: type[Model], name: str) -> StoredRecord[Model]:
    """Parse the bytes of a record; `name` is the name of its file, for messages."""
    try:
        return StoredRecord("sound", kind.model_validate_json(data))
    except ValidationError as error:
        ours = 0
        if "schema_version" in kind.model_fields:
            ours = kind.model_fields["schema_version"].default
        schema = _wrong_schema(error)
        # Not damaged: the version that wrote it can read it, and a backup would not help.
        if schema is not None and schema > ours:
            why = f"{name}: a newer version of Scalestudy wrote it (schema {schema}, here {ours})"
            return StoredRecord("corrupt", why=why, newer=True)
        return StoredRecord("corrupt", why=f"{name}: {first_error(error)}")


def _wrong_schema(error: ValidationError) -> int | None:
    """The number of a schema that was refused; None if it was something else that was."""
    for wrong in error.errors():
        if wrong["loc"] == ("schema_version",) and isinstance(wrong["input"], int):
            schema: int = wrong["input"]
            return schema
    return None


def write_record(path: Path, record: BaseModel, *, durable: bool = True) -> None:
    """Write a record atomically; raises OSError."""
    write_atomically(path, _text(record), durable=durable)


def _text(record: BaseModel) -> str:
    # Indented: people read records, too.
    return record.model_dump_json(indent=1) + "\n"


def first_error(error: ValidationError) -> str:
    """The first validation error: "epochs: Field required"."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    # pydantic puts these words before a validator's own.
    text = first["msg"].removeprefix("Value error, ")
    if not where:
        return text
    return f"{where}: {text}"


def write_checksums(
    folder: Path,
    names: Iterable[str],
    coming: Mapping[str, BaseModel] | None = None,
) -> None:
    """Write the checksums of files in a folder, given by relative names; raises OSError.

    `coming` holds records that will be written after the checksums.
    """
    found = {name: file_checksum(folder / name) for name in names}
    for name, record in (coming or {}).items():
        # Of the text that will be written: the result comes last, after the checksums that name it.
        data = _text(record).encode()
        found[name] = hashlib.sha256(data).hexdigest()
    text = ""
    for name in sorted(found):
        # Two blanks, as `sha256sum --check` reads it.
        text += f"{found[name]}  {name}\n"
    write_atomically(folder / CHECKSUMS, text)


def read_checksums(folder: Path) -> dict[str, str]:
    """Read the checksums that `write_checksums` wrote, by file name.

    Raises:
        OSError: They cannot be read.
        ValueError: They are damaged.
    """
    checksums = {}
    text = contents(folder / CHECKSUMS).decode()
    for number, line in enumerate(text.splitlines(), start=1):
        checksum, separator, name = line.partition("  ")
        if not separator or len(checksum) != 64:
            raise ValueError(f"line {number} holds no checksum")
        checksums[name] = checksum
    return checksums


def file_checksum(file: Path) -> str:
    """SHA-256 of a regular file, in hexadecimal digits; raises OSError."""
    # Models and checkpoints may have any size.
    with open_regular(file, most=2**63) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
