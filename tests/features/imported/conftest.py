"""Files of numbers that tests write and read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from published import TABLES
from scalestudy.features.imported.columns import ImportOptions
from scalestudy.features.imported.gather import Imported, gather_runs

Read = Callable[..., Imported]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write texts to these file names and read them."""

    def call(files: dict[str, str | bytes], **options: Any) -> Imported:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
        return gather_runs(
            [str(tmp_path / name) for name in files], ImportOptions(**options)
        )

    return call


def published_log(workers: int, seconds: float, speedup: float, iou: float) -> str:
    """A log in the published form: pandas' index, and the total time and the IoU in every row."""
    rows = [",time_per_epoch,loss,lr,training_time,test_time,iou"]
    for epoch in range(6):
        time = 37.58 / speedup * (1 if epoch else 5)
        rows.append(
            f"{epoch},{time:.6f},{0.4 / (1 + epoch):.6f},{0.001 * workers},{seconds},1.5,{iou}"
        )
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="session")
def published_logs() -> dict[str, str]:
    """The sixteen logs of the published study by name, with its times, speed-ups and qualities."""
    files = {}
    for workers, *values in TABLES["u_net"]["rows"]:
        files[f"log_{workers}.csv"] = published_log(workers, *values[:3])
        files[f"log_hvd_{workers}.csv"] = published_log(workers, *values[3:])
    return files
