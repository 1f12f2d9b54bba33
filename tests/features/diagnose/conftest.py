"""Diagnoses with known answers, and the made studies of the tests of analysis, shared."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "analysis")]
