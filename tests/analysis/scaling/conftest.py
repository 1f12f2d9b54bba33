"""The made studies of the tests of analysis, shared."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
