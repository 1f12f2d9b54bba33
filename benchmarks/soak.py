"""Inject random faults into real runs and report what they lost, leaked or misreported.

`.venv/bin/python benchmarks/soak.py [--faults 300] [--seed 0] [--jobs 2] [--only NAME]`. A chain runs one
study repeatedly: each time a run is paused in a random phase, a random fault is injected, and the run is
resumed. It must end on its own without leaving a process or a temporary file (leaked), and its reason must
name the fault (misnamed). At the end of the chain a run without faults must reach the weights and losses of
an undisturbed run (lost). Then files of the finished study are damaged, one at a time. `--each` draws
nothing: every fault is injected once in every phase that it suits, each in a study of its own, which is then
run to its end. `--slurm N` adds faults on the project's own Slurm cluster (root, Debian: `make test-tools`).
Needs root to mount file systems; exit code 1 unless every fault is survived.
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

from faults.chain import START, Learnt, finish, said, struck, torn_at_rest
from faults.fault import Fault, Outcome, table
from faults.here import FAULTS
from faults.scene import PHASES, Scene, fresh

STRATEGIES = (
    "single",
    "native",
    "mirrored",
    "multiworker",
    "horovod",
    "virtual",
    "torch-single",
    "torch-virtual",
    "ddp",
)
CHAIN = 8
"""Faults per study, before it is run to its end."""
LAUNCH = "progress_timeout = 60"
Chain = Callable[[], list[Outcome]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="a pattern that names of faults must match")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES)
    parser.add_argument("--phase", action="append", choices=(START, *PHASES))
    parser.add_argument(
        "--each",
        action="store_true",
        help="every fault once in every phase, none drawn",
    )
    parser.add_argument(
        "--slurm",
        type=int,
        default=0,
        metavar="N",
        help="N more faults, on a Slurm cluster",
    )
    options = parser.parse_args()
    strategies = options.strategy or STRATEGIES
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        known = References(Path(folder))
        outcomes: list[Outcome] = []
        with ThreadPoolExecutor(options.jobs) as pool:
            chains = (every if options.each else drawn)(
                options, strategies, known, Path(folder)
            )
            for done in pool.map(lambda chain: chain(), chains):
                outcomes += done
        if options.slurm:
            from faults.cluster import chains_on_slurm

            outcomes += chains_on_slurm(options.slurm, options.seed, LAUNCH, known.of)
    print(table(outcomes))
    return 0 if all(each.survived for each in outcomes) else 1


def drawn(
    options: argparse.Namespace,
    strategies: Sequence[str],
    known: "References",
    parent: Path,
) -> Iterator[Chain]:
    """Draw chains of faults from the seed: two of three faults hit runs, the others files at rest."""
    draw = random.Random(options.seed)
    wanted, left = faults_of(options), options.faults
    for number in range(options.faults):
        strategy = strategies[number % len(strategies)]
        if left <= 0:
            return
        planted = []
        for _ in range(min(CHAIN, left)):
            phase = draw.choice(options.phase or (START, *PHASES))
            suited = [each for each in wanted if each.suits(strategy, phase)]
            planted += [(draw.choice(suited), phase)] if suited else []
        resting = min(CHAIN // 2, left - len(planted)) if not options.only else 0
        left -= len(planted) + resting
        seed = draw.random()
        yield partial(chain, strategy, planted, resting, seed, known, parent)


def every(
    options: argparse.Namespace,
    strategies: Sequence[str],
    known: "References",
    parent: Path,
) -> Iterator[Chain]:
    """Yield every fault in every phase, each in a study of its own; the seed decides which ranks are hit."""
    for strategy, phase in product(strategies, options.phase or (START, *PHASES)):
        for fault in faults_of(options):
            if fault.suits(strategy, phase):
                yield partial(
                    chain, strategy, [(fault, phase)], 0, options.seed, known, parent
                )


def faults_of(options: argparse.Namespace) -> list[Fault]:
    """Faults whose names match `--only`."""
    return [
        each
        for each in FAULTS
        if not options.only or re.search(options.only, each.name)
    ]


def chain(
    strategy: str,
    planted: Sequence[tuple[Fault, str]],
    resting: int,
    seed: float,
    known: "References",
    parent: Path,
) -> list[Outcome]:
    """Inject these faults into one study, one after another, and run it to its end."""
    draw, reference = random.Random(seed), known.of(strategy)
    scene = fresh(strategy, LAUNCH, parent)
    outcomes = []
    with own_disk(scene):
        for fault, phase in planted:
            outcomes.append(said(struck(scene, fault, phase, draw, reference)))
        whole = Outcome("none, to the end", strategy, "all")
        finish(scene, whole, reference)
        outcomes.append(said(whole))
        for _ in range(resting if whole.survived else 0):
            outcomes.append(said(torn_at_rest(scene, draw, reference)))
    scene.end_all()
    scene.remove()
    return outcomes


class References:
    """The result of an undisturbed run of each strategy; each is run once."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._known, self._lock = (
            folder,
            dict[str, Learnt](),
            threading.Lock(),
        )

    @property
    def known(self) -> Mapping[str, Learnt]:
        return self._known

    def of(self, strategy: str) -> Learnt:
        with self._lock:
            if strategy not in self._known:
                scene = fresh(strategy, LAUNCH, self._folder)
                code = scene.ended(scene.run())
                assert code == 0, scene.said()
                self._known[strategy] = scene.learnt()
                print(
                    f"undisturbed: {strategy} ends with {self._known[strategy][0][:12]}",
                    flush=True,
                )
                scene.remove()
            return self._known[strategy]


class own_disk:
    """Context in which a scene's results are on a small file system of their own."""

    def __init__(self, scene: Scene) -> None:
        self._path = scene.root / "studies"

    def __enter__(self) -> None:
        self._path.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16m", "soak", str(self._path)],
            check=True,
        )

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", str(self._path)], check=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:
        traceback.print_exc()
        sys.exit(2)
