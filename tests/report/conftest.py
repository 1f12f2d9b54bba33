"""The made studies of the tests of analysis and of statements, shared."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [
    str(Path(__file__).parent),
    *(str(TESTS / name) for name in ("analysis", "features/proposal", "features/compare")),
]
