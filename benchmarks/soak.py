"""Hold the whole to it: random faults in real runs, and what was lost, leaked or misnamed by them.

`.venv/bin/python benchmarks/soak.py [--faults 300] [--seed 0] [--jobs 2] [--only NAME]`. A chain is one
study, run again and again: each time a run is held in a random phase, a random fault is planted, and the
run is let go. It must end, by itself, without a process or a temporary file left (leaked), with a reason
that names what was planted (misnamed); and at the end of the chain an undisturbed run must end with the
weights and the losses of one that nobody ever disturbed (lost). Then files of the finished study are torn,
one at a time. With `--slurm` likewise on a cluster of the project's own (root, Debian: `make test-tools`).
Needs root, for file systems of its own; exit code 1 unless every fault is survived.
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from faults import torn
from faults.fault import Fault, Outcome, table
from faults.here import FAULTS
from faults.scene import PHASES, Scene, StuckError, fresh, wait_for

STRATEGIES = ("single", "native", "mirrored", "multiworker", "horovod", "virtual")
CHAIN = 8
"""Faults of one study, before it is run to its end."""
LAUNCH = "silent_after = 10"
Learnt = tuple[str, list[tuple[int, int, float]]]
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
    parser.add_argument("--slurm", action="store_true", help="on a Slurm cluster, a quarter of the faults")
    options = parser.parse_args()
    strategies = options.strategy or STRATEGIES
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        known = References(Path(folder))
        outcomes: list[Outcome] = []
        with ThreadPoolExecutor(options.jobs) as pool:
            chains = drawn(options, strategies, known, Path(folder))
            for done in pool.map(lambda chain: chain(), chains):
                outcomes += done
        if options.slurm:
            from faults.cluster import chains_on_slurm

            outcomes += chains_on_slurm(options.faults // 4, options.seed, known.of)
    print(table(outcomes))
    return 0 if all(each.survived for each in outcomes) else 1


def drawn(
    options: argparse.Namespace, strategies: Sequence[str], known: "References", parent: Path
) -> Iterator[Chain]:
    """Chains of faults, drawn from the seed: two of three faults strike runs, the others files at rest."""
    draw = random.Random(options.seed)
    wanted = [each for each in FAULTS if not options.only or re.search(options.only, each.name)]
    left = options.faults
    for number in range(options.faults):
        strategy = strategies[number % len(strategies)]
        if left <= 0:
            return
        planted = []
        for _ in range(min(CHAIN, left)):
            phase = draw.choice(PHASES)
            suited = [each for each in wanted if each.suits(strategy, phase)]
            planted += [(draw.choice(suited), phase)] if suited else []
        resting = min(CHAIN // 2, left - len(planted)) if not options.only else 0
        left -= len(planted) + resting
        seed = draw.random()
        yield partial(chain, strategy, planted, resting, seed, known, parent)


def chain(
    strategy: str,
    planted: Sequence[tuple[Fault, str]],
    resting: int,
    seed: float,
    known: "References",
    parent: Path,
) -> list[Outcome]:
    """Plant these faults into one study, one after another, and run it to its end."""
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


def struck(scene: Scene, fault: Fault, phase: str, draw: random.Random, reference: Learnt) -> Outcome:
    """One run that is held in a phase, struck by a fault, and let go."""
    outcome = Outcome(fault.name, scene.strategy, phase)
    status = scene.status()
    if status is not None and status.state == "done":
        scene.forget()
    scene.release()
    scene.hold(phase)
    process, planted = scene.run(), ""
    try:
        wait_for(lambda: scene.reached(phase) or process.poll() is not None, f"phase {phase}")
        planted = fault.plant(scene, draw)
        begun = time.monotonic()
        scene.let_go()
        scene.ended(process)
        outcome.seconds = time.monotonic() - begun
    except StuckError as error:
        outcome.lost.append(f"hung: {error} did not come")
        scene.end_all()
        process.wait()
    finally:
        fault.lift(scene)
    judge(scene, outcome, planted, reference)
    return outcome


def judge(scene: Scene, outcome: Outcome, planted: str, reference: Learnt) -> None:
    """What the run has left, and what it says of its end."""
    outcome.leaked += scene.left_processes()
    said = scene.said()
    if "Traceback (most recent call last)" in said:
        outcome.misnamed.append("a traceback: " + said.strip().splitlines()[-1])
    try:
        status = scene.status()
    except Exception as error:
        outcome.misnamed.append(f"its status cannot be told: {type(error).__name__}: {error}")
        return
    if status is not None and status.state == "done":
        if scene.learnt() != reference:
            outcome.lost.append("it has learnt something else")
        return
    outcome.reason = status.reason if status else ""
    if status is not None and status.state == "running":
        outcome.misnamed.append("it is said to be running")
    if not re.search(planted, outcome.reason + "\n" + said):
        outcome.misnamed.append(f"{outcome.reason!r} does not match {planted!r}")


def finish(scene: Scene, outcome: Outcome, reference: Learnt) -> None:
    """Run the study to its end, undisturbed."""
    scene.release()
    try:
        code = scene.ended(scene.run())
    except StuckError as error:
        outcome.lost.append(f"hung: {error} did not come")
        return
    status = scene.status()
    if code or status is None or status.state != "done":
        reason = status.reason if status else "no point"
        outcome.lost.append(f"exit code {code}, {reason!r}: {scene.said()[-300:]}")
    elif scene.learnt() != reference:
        outcome.lost.append(f"it has learnt something else: {scene.learnt()} instead of {reference}")
    outcome.leaked += scene.left_processes() + scene.leftovers()


def torn_at_rest(scene: Scene, draw: random.Random, reference: Learnt) -> Outcome:
    """A file of the finished study is torn: it must be named, and nothing be trained in its place."""
    name, how = draw.choice(torn.TORN), draw.choice(list(torn.TEARS))
    path = torn.find(scene, name)
    outcome = Outcome(f"{name.rpartition('/')[2]} torn", scene.strategy, how)
    if path is None or (how == "newer" and path.suffix != ".json"):
        return outcome
    before = path.read_bytes()
    runs = sorted(scene.results.glob("points/*/run-*"))
    with torn.Torn(scene, path, how, draw):
        changed = not path.is_file() or path.read_bytes() != before
        code = scene.ended(scene.start("verify", str(scene.results)))
        if changed and name in torn.LASTING and not (code and path.name in scene.said()):
            outcome.misnamed.append(f"verify: exit code {code}, without {path.name}")
        tracebacks = "Traceback (most recent call last)" in scene.said()
        if name not in torn.MAY_TRAIN or how != "removed":
            scene.ended(scene.run())
            tracebacks |= "Traceback (most recent call last)" in scene.said()
            if sorted(scene.results.glob("points/*/run-*")) != runs:
                outcome.lost.append(f"{name} {how}: it was trained again: {scene.said()[-300:]}")
        if tracebacks:
            outcome.misnamed.append("a traceback: " + scene.said().strip().splitlines()[-1])
    try:
        status = scene.status()
        if status is None or status.state != "done" or scene.learnt() != reference:
            outcome.lost.append(f"{name} {how}, and back: {status}")
    except Exception as error:
        outcome.lost.append(f"{name} {how}, and back: {error}")
    outcome.leaked += scene.left_processes() + scene.leftovers()
    return outcome


class References:
    """What a run of each strategy learns that nobody disturbs; each is run once."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._known, self._lock = folder, dict[str, Learnt](), threading.Lock()

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
                print(f"undisturbed: {strategy} ends with {self._known[strategy][0][:12]}", flush=True)
                scene.remove()
            return self._known[strategy]


class own_disk:
    """Within, a scene's results lie on a small file system of their own."""

    def __init__(self, scene: Scene) -> None:
        self._path = scene.root / "studies"

    def __enter__(self) -> None:
        self._path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "soak", str(self._path)], check=True)

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", str(self._path)], check=True)


def said(outcome: Outcome) -> Outcome:
    """Print an outcome."""
    word = "survived" if outcome.survived else "FAILED"
    told = f": {outcome.reason}" if outcome.reason else ""
    print(f"{word}: {outcome.fault}, {outcome.strategy}, {outcome.phase}{told}", flush=True)
    for what, words in (("lost", outcome.lost), ("leaked", outcome.leaked), ("misnamed", outcome.misnamed)):
        for each in words:
            print(f"    {what}: {each}", flush=True)
    return outcome


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:
        traceback.print_exc()
        sys.exit(2)
