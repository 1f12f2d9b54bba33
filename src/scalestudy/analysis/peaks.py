"""The peak of a device's arithmetic, from the table of them; unknown where it is not in it."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from scalestudy.analysis.runs import Run

KINDS = {"float32": "float32", "tf32": "tf32", "mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
"""The arithmetic of the factors of products, by `train.precision`."""
TERA = 1e12


class Peak(NamedTuple):
    """FLOP/s of one device, or why they are unknown."""

    value: float | None = None
    reason: str | None = None


def peak_of(runs: Sequence[Run]) -> Peak:
    """The peak of the devices that runs computed on, in their arithmetic: as the site states it, or known."""
    stated = {rank.peak_flops for run in runs for rank in run.ranks}
    if len(stated) == 1 and (value := stated.pop()):
        return Peak(value)
    names = {name for run in runs for rank in run.ranks if rank.device_uuids for name in rank.devices}
    kinds = {KINDS.get(run.result.precision or "") for run in runs}
    if not names:
        return Peak(reason="the peak of CPUs is unknown")
    if len(names) > 1:
        return Peak(reason=f"runs computed on unlike GPUs ({', '.join(sorted(names))})")
    (name,), kind = names, kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        return Peak(reason="the arithmetic of a run was not recorded")
    value = device_peak(name, kind)
    return Peak(value) if value else Peak(reason=f"no peak of {name} in {kind} is known")


def device_peak(name: str, kind: str) -> float | None:
    """FLOP/s of a GPU, dense, as its maker states them; of MIG instances none is known.

    `name` is as the driver gives it, "NVIDIA A100-SXM4-80GB"; `kind` one of the values of `KINDS`.
    """
    value = _entry(name).get(kind)
    return float(value) * TERA if isinstance(value, int | float) else None


def may_have_tf32(name: str) -> bool:
    """Whether a GPU computes in TensorFloat-32, by its name as the driver gives it; unknown ones may."""
    entry = _entry(name)
    return not entry or "tf32" in entry


def _entry(name: str) -> Mapping[str, object]:
    short = re.sub(r"^(NVIDIA |Tesla )+", "", name)
    return next((row for row in _table() if re.fullmatch(str(row["name"]), short)), {})


@cache
def _table() -> list[Mapping[str, object]]:
    text = resources.files("scalestudy.analysis").joinpath("device_peaks.toml").read_text()
    devices: list[Mapping[str, object]] = tomllib.loads(text)["device"]
    return devices
