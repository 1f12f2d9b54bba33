"""The table of `benchmarks/gpu.py`: ratios within a round, each of our rows against its own kind."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from gpu_table import machine, table  # noqa: E402


def row(way: str, strategy: str, workers: int, *rates: float, **phases: float) -> dict:
    named = {"model": "cnn", "way": way, "strategy": strategy, "workers": workers}
    return {**named, "rates": list(rates), "phases": phases}


def test_ratios_are_taken_within_a_round_and_against_the_same_devices():
    rows = [
        row("Keras fit", "mirrored", 2, 100.0, 10.0, 50.0),
        row("bare loop", "mirrored", 2, 200.0, 40.0, 80.0),
        row("ours", "mirrored", 2, 150.0, 20.0, 60.0, steps=9.0, input=0.95, other=0.05),
        row("bare loop", "horovod", 2, 60.0, 60.0, 60.0),
        row("ours", "horovod", 2, 30.0, 30.0, 30.0, steps=1.0),
    ]
    lines = table(rows, "gpu", "float32, 3 rounds")
    assert "| cnn | 2 | mirrored | Keras fit | 50.0 [10.0, 100.0] |  |  |  |" in lines
    assert "| cnn | 2 | mirrored | ours | 60.0 [20.0, 150.0] | 1.50 | 0.75 | steps 90, input 10 |" in lines
    assert "| cnn | 2 | horovod | ours | 30.0 [30.0, 30.0] | 0.60 | 0.50 | steps 100 |" in lines
    assert [line.count("|") for line in lines[2:]] == [9] * 7
    assert "| GPUs |" in lines[2] and lines[0].startswith("float32, 3 rounds.")


def test_the_machine_is_named():
    gpus, cpu, software = machine("cpu")
    assert "computed on: cpu" in gpus
    assert "cores" in cpu
    assert "keras" in software
