"""Epochs until the target quality that MLPerf published, by global batch; see `mlperf.toml`."""

import tomllib
from pathlib import Path

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def _table(name: str) -> dict[int, list[int]]:
    return {int(batch): epochs for batch, epochs in _TABLES[name].items()}


RESNET, SSD, U_NET_3D = _table("resnet"), _table("ssd"), _table("unet3d")
