"""Paths of the project and of files for tests. `tests/support` is on the import path (`pyproject.toml`)."""

from pathlib import Path

SUPPORT = Path(__file__).parent
TESTS = SUPPORT.parent
PROJECT = TESTS.parent
SOURCE = PROJECT / "src"
BENCHMARKS = PROJECT / "benchmarks"
SMALL_UNET = SUPPORT / "small_unet.py"
OWN_TASK = SUPPORT / "own_task.py"
TORCH_BUFFERS = SUPPORT / "torch_buffers.py"
CNN_WITHOUT_DROPOUT = SUPPORT / "cnn_without_dropout.py"
