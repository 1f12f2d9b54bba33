"""A file whose checksum is known once it is written."""

import hashlib
from typing import IO, Any


class Digested:
    """A file that is written, and the SHA-256 of what was written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def write(self, data: Any) -> int:
        """Write bytes, or a contiguous buffer."""
        self._digest.update(data)
        return self._file.write(data)

    def hexdigest(self) -> str:
        """Of all so far."""
        return self._digest.hexdigest()
