"""The stand-in for NVML is the machine's."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "machine"))
