"""The output of `gpu.py`: the machine and one table."""

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from scalestudy.hardware import cores, devices
from scalestudy.hardware.installed import packages
from scalestudy.hardware.nvml import driver_version
from speed import ratio

Row = dict[str, Any]


def machine(device: str) -> list[str]:
    """Describe GPUs, CPU and software."""
    found = devices.read_gpus()
    names = [
        f"{gpu.name} ({'.'.join(map(str, gpu.capability or ('?',)))})" for gpu in found
    ]
    counts = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    versions = packages()
    wanted = ("scalestudy", "tensorflow", "tensorflow-cpu", "torch", "keras", "horovod")
    software = ", ".join(
        f"{name} {versions[name]}" for name in wanted if name in versions
    )
    return [
        f"GPUs: {', '.join(counts) or 'none'}; driver {driver_version() or 'none'}; computed on: {device}",
        f"CPU: {cores.cpu_model()}, {len(cores.granted())} cores",
        f"Software: {software}",
    ]


def table(rows: Iterable[Row], device: str, heading: str) -> list[str]:
    """Markdown rows: median [smallest, largest] of the rounds, ours over the others, and our phases."""
    rates = {
        (row["model"], row["way"], row["strategy"], row["workers"]): row["rates"]
        for row in rows
    }

    def over(row: Row, way: str) -> str:
        keras = way == "Keras fit" and row["workers"] > 1
        those = rates.get(
            (
                row["model"],
                way,
                "mirrored" if keras else row["strategy"],
                row["workers"],
            )
        )
        if not row["way"].startswith("ours") or those is None:
            return ""
        return f"{statistics.median(ratio(row['rates'], those)):.2f}"

    unit = "GPUs" if device == "gpu" else "cores"
    lines = [
        f"{heading}. Samples/s: median [smallest, largest]. Ratios: ours over the other, median of rounds."
        " Phases: shares of our wall time, last round.",
        "",
        f"| model | {unit} | strategy | program | samples/s | / Keras | / bare | / fused"
        " | phases of the run, % |",
        "|---|--:|---|---|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        middle, least, most = (
            statistics.median(row["rates"]),
            min(row["rates"]),
            max(row["rates"]),
        )
        wall = sum(row["phases"].values())
        spent = [
            f"{phase} {100 * seconds / wall:.0f}"
            for phase, seconds in row["phases"].items()
            if seconds / wall >= 0.01
        ]
        lines.append(
            f"| {row['model']} | {row['workers']} | {row['strategy']} | {row['way']} | {middle:.1f}"
            f" [{least:.1f}, {most:.1f}] | {over(row, 'Keras fit')} | {over(row, 'bare loop')}"
            f" | {over(row, 'fused loop')} | {', '.join(spent)} |"
        )
    return lines


WAYS = ("ours", "ours, compiled", "ours, Keras model", "plain", "plain, compiled")
"""Columns of the table of `gpu_torch.py`."""


def ways_table(found: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Markdown: samples/s of each way, and times plain, for each network and precision."""
    lines = [
        f"| network, precision | {' | '.join(WAYS)} | MFU of ours |",
        "|---" * (len(WAYS) + 2) + "|",
    ]
    for what, rows in found.items():
        cells = [
            rows.get(way, "").replace(" samples/s, ", " (").replace(" x plain", " x)")
            for way in WAYS
        ]
        lines.append(f"| {' | '.join([what, *cells, rows.get('MFU of ours', '')])} |")
    return lines
