"""A process that reads what many runs have left: folders on its input, what they hold on its output."""

import pickle
import sys
from pathlib import Path

from scalestudy.analysis.records import ALIKE, AT_ONCE, read_each
from scalestudy.study.remembered import shared, uncollected


def main() -> None:
    """Read the folders, and write what they hold in pieces."""
    folders = [Path(folder) for folder in pickle.load(sys.stdin.buffer)]
    for start in range(0, len(folders), AT_ONCE):
        with uncollected():
            found = list(read_each(folders[start : start + AT_ONCE]))
        ranks = [rank for each in found for rank in each.ranks]
        shared(ranks, *ALIKE)
        pickle.dump(found, sys.stdout.buffer, protocol=5)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
