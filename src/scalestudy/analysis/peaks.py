"""Peak FLOP/s of a device, from `device_peaks.toml`; unknown for devices not listed there."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from scalestudy.analysis.runs import Run

KINDS = {"float32": "float32", "tf32": "tf32", "mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
"""Arithmetic of matrix products, by `train.precision`."""
TERA = 1e12


class Peak(NamedTuple):
    """FLOP/s of one device, or the reason why they are unknown."""

    value: float | None = None
    reason: str | None = None


def peak_of(runs: Sequence[Run]) -> Peak:
    """Peak of the runs' devices in the runs' arithmetic: from the site profile, else from the table."""
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
    """Dense FLOP/s of a GPU as its vendor states them; None for MIG instances.

    `name` is the driver's name, such as "NVIDIA A100-SXM4-80GB"; `kind` is one of the values of `KINDS`.
    """
    value = _entry(name).get(kind)
    return float(value) * TERA if isinstance(value, int | float) else None


def may_have_tf32(name: str) -> bool:
    """Whether a GPU supports TensorFloat-32, by the driver's name for it; True for unknown GPUs."""
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
