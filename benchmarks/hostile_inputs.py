"""Run the command line on hundreds of bad inputs and classify each result.

`.venv/bin/python benchmarks/hostile_inputs.py` generates inputs from a seed, by families, and gives each to
the command line in a forked process, so that hundreds take a minute. It counts by family: refused (a message
with three parts, nothing written), accepted (valid after all, or only displayed), and the faults: taken
although it must be refused, an unclear message, a traceback, a hang, files left behind. Exit code 1 if there
is a fault.

`--every 10` runs every tenth input, `--family site` those of one family, `--slow` also those that start a
framework.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from hostile import command_lines, folders, sites, sources, study_files, tasks
from hostile.case import Case
from hostile.judge import FAULTS, VERDICTS, Outcome, judge


def made(seed: int, base: Path) -> list[Case]:
    """All cases of a seed; files that several cases share are created once below `base`."""
    draw = random.Random(seed)
    results, prepared = base / "results", base / "prepared"
    results.mkdir()
    prepared.mkdir()
    folders.make(results)
    sites.make(prepared)
    return [
        *study_files.cases(draw),
        *command_lines.cases(draw),
        *sources.cases(draw),
        *tasks.cases(draw),
        *folders.cases(draw, results),
        *sites.cases(draw, prepared),
    ]


def warm() -> None:
    """Import once, for all forks, what the commands import, except modules that start threads."""
    import polars  # noqa: F401

    from scalestudy.analysis import findings  # noqa: F401
    from scalestudy.app import plan, prepare, run_study  # noqa: F401
    from scalestudy.cli import points_table, terminal_listener  # noqa: F401
    from scalestudy.data.sources import arrays, folders  # noqa: F401
    from scalestudy.features.check import check  # noqa: F401
    from scalestudy.launch.launcher import LAUNCHERS
    from scalestudy.report import study_document  # noqa: F401

    for name in LAUNCHERS.names():
        LAUNCHERS.get(name)


def run_all(cases: Sequence[Case], base: Path, limit: float) -> Iterator[Outcome]:
    """Yield the outcome of each case, run in a temporary folder of its own."""
    for number, case in enumerate(cases):
        folder = base / f"case-{number}"
        yield judge(case, folder, limit)
        shutil.rmtree(folder, ignore_errors=True)


def print_fault(outcome: Outcome) -> None:
    words = " | ".join(outcome.told.strip().splitlines()[-4:])[-400:]
    print(
        f"{outcome.verdict}: {outcome.case.family}: {outcome.case.name}: {words}",
        flush=True,
    )


def print_counts(outcomes: Sequence[Outcome]) -> None:
    print(f"{'family':<24}" + "".join(f"{name:>12}" for name in ("inputs", *VERDICTS)))
    families = list(dict.fromkeys(each.case.family for each in outcomes))
    for family in (*families, "all"):
        count = Counter(
            each.verdict for each in outcomes if family in (each.case.family, "all")
        )
        figures = (count.total(), *(count[verdict] for verdict in VERDICTS))
        print(f"{family:<24}" + "".join(f"{figure or '':>12}" for figure in figures))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--every", type=int, default=1, help="run each K-th input of each family"
    )
    parser.add_argument(
        "--family", default="", help="only families whose names begin so"
    )
    parser.add_argument(
        "--slow", action="store_true", help="also those that start a framework"
    )
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds of one input"
    )
    options = parser.parse_args()
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "NO_COLOR": "1"}
    warm()
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        base = Path(name)
        cases = [
            case
            for case in made(options.seed, base)
            if case.family.startswith(options.family)
            and (options.slow or not case.slow)
        ]
        families = {case.family for case in cases}
        cases = [
            case
            for family in sorted(families)
            for case in [each for each in cases if each.family == family][
                :: options.every
            ]
        ]
        outcomes = []
        for outcome in run_all(cases, base, options.limit):
            outcomes.append(outcome)
            if outcome.verdict in FAULTS:
                print_fault(outcome)
        print_counts(outcomes)
        slowest = max(outcomes, key=lambda each: each.seconds)
        print(
            f"slowest: {slowest.case.family}: {slowest.case.name}, {slowest.seconds:.1f} s"
        )
    return 1 if any(each.verdict in FAULTS for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
