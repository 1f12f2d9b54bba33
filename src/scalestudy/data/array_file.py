"""An .npy file that is written row by row."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from scalestudy.data.digested import Digested


class ArrayFile:
    """Writes `NAME.npy`: its header at once, then what it is given.

    Raises, as its methods do:
        OSError: The folder cannot take it.
    """

    def __init__(self, folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._name = f"{name}.npy"
        self._stream = open(folder / self._name, "wb")  # noqa: SIM115
        self._digested = Digested(self._stream)
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._digested, header)  # type: ignore[arg-type]

    def write(self, row: Any) -> None:
        """Add the bytes of a row."""
        self._digested.write(row)

    def finish(self) -> dict[str, str]:
        """Have it on the disk: its SHA-256 by its name."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.close()
        return {self._name: self._digested.hexdigest()}

    def close(self) -> None:
        """Close the file, whole or not."""
        self._stream.close()
