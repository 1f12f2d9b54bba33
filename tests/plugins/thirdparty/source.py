"""A source of data: striped images, "thirdparty:COUNT"."""

from collections.abc import Iterator

import numpy as np

from scalestudy import Contents, DataSettings, Sample, digest


class Stripes:
    """Stripes that run down or across, with noise."""

    kind = "classes"
    label = "thirdparty"

    def __init__(self, argument: str | None, data: DataSettings) -> None:
        self._count, self._size, self._seed = (
            int(argument or 20),
            data.image_size or (8, 8),
            data.seed,
        )
        self.identity = f"thirdparty:{self._count}"
        self.fingerprint = digest("thirdparty", 1, self._count, self._size, self._seed)

    def contents(self) -> Contents:
        return Contents(
            self._count, (*self._size, 1), np.dtype(np.uint8), 1 / 255, None, {}
        )

    def rows(self) -> Iterator[Sample]:
        generator = np.random.default_rng(self._seed)
        for index in range(self._count):
            stripes = np.indices(self._size)[index % 2] % 2 * 200
            image = stripes + generator.integers(0, 50, self._size)
            yield image.astype(np.uint8)[:, :, None], index % 2

    def class_names(self) -> list[str]:
        return ["down", "across"]
