"""Inject faults into one study, one after another, and check each outcome."""

import random
import re
import time

from faults import torn
from faults.fault import Fault, Outcome
from faults.scene import Scene, StuckError, wait_for
from scalestudy.store.run_folder import RunFolder

START = "start"
"""The phase before a run can be paused: any moment of the first seconds."""
LATEST_START = 3.0
Learnt = tuple[str, list[tuple[int, int, float]]]
"""Result of a run: digest of its weights; epoch, samples and loss of each epoch."""


def struck(
    scene: Scene, fault: Fault, phase: str, draw: random.Random, reference: Learnt
) -> Outcome:
    """Pause one run in a phase, inject a fault, resume the run, and judge its end."""
    outcome = Outcome(fault.name, scene.strategy, phase)
    status = scene.status()
    if status is not None and status.state == "done":
        scene.forget()
    scene.release()
    scene.hold(phase)
    before = scene.newest_run()
    process, planted = scene.run(), ""
    try:
        if phase == START:
            time.sleep(draw.uniform(0, LATEST_START))
        else:
            wait_for(
                lambda: scene.reached(phase) or process.poll() is not None,
                f"phase {phase}",
            )
        if phase == START or scene.reached(phase):
            planted = fault.plant(scene, draw)
        else:
            outcome.lost.append(
                f"not planted: the run ended before it had reached the phase {phase}"
            )
        begun = time.monotonic()
        scene.let_go()
        scene.ended(process)
        if fault.by_launcher and scene.outlives:  # a second command watches the run
            scene.ended(scene.run())
        outcome.seconds = time.monotonic() - begun
    except StuckError as error:
        outcome.lost.append(f"hung: {error} did not come; {scene.situation()}")
        scene.end_all()
        process.wait()
    finally:
        fault.lift(scene)
    judge(scene, outcome, fault, planted, reference, before)
    return outcome


def judge(
    scene: Scene,
    outcome: Outcome,
    fault: Fault,
    planted: str,
    reference: Learnt,
    before: RunFolder | None,
) -> None:
    """Record what the run left behind and whether its reason names the fault."""
    outcome.leaked += scene.left_processes()
    said = scene.said()
    if "Traceback (most recent call last)" in said:
        outcome.misnamed.append("a traceback: " + said.strip().splitlines()[-1])
    try:
        status = scene.status()
    except Exception as error:
        outcome.misnamed.append(
            f"its status cannot be told: {type(error).__name__}: {error}"
        )
        return
    if status is not None and status.state == "done":
        if scene.learnt() != reference:
            outcome.lost.append("it has learnt something else")
        return
    outcome.reason = status.reason if status else ""
    begun = status is not None and status.run is not None and status.run != before
    if fault.by_launcher and outcome.phase == START and not begun:
        return  # no run existed yet that could report it
    if status is not None and status.state == "running":
        outcome.misnamed.append("it is said to be running")
    if not re.search(planted, outcome.reason + "\n" + said):
        outcome.misnamed.append(f"{outcome.reason!r} does not match {planted!r}")


def finish(scene: Scene, outcome: Outcome, reference: Learnt) -> None:
    """Run the study to its end without faults."""
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
        outcome.lost.append(
            f"it has learnt something else: {scene.learnt()} instead of {reference}"
        )
    outcome.leaked += scene.left_processes() + scene.leftovers()


def torn_at_rest(scene: Scene, draw: random.Random, reference: Learnt) -> Outcome:
    """Damage a file of the finished study: verify must name it, and no run may be trained again for it."""
    name, how = draw.choice(torn.TORN), draw.choice(list(torn.TEARS))
    path = torn.find(scene, name)
    outcome = Outcome(f"{name.rpartition('/')[2]} torn", scene.strategy, how)
    if path is None or (how == "newer" and path.suffix != ".json"):
        return outcome
    before = path.read_bytes()
    runs = sorted(scene.results.glob("points/*/run-*"))
    with torn.Torn(scene, path, how, draw):
        changed = not path.is_file() or path.read_bytes() != before
        code = scene.ended(scene.start("status", "--verify", str(scene.results)))
        lasting = name in torn.LASTING and not (
            how == "removed" and name in torn.MADE_ANEW
        )
        if changed and lasting and not (code and path.name in scene.said()):
            outcome.misnamed.append(f"verify: exit code {code}, without {path.name}")
        tracebacks = "Traceback (most recent call last)" in scene.said()
        if name not in torn.MAY_TRAIN or how != "removed":
            scene.ended(scene.run())
            tracebacks |= "Traceback (most recent call last)" in scene.said()
            if sorted(scene.results.glob("points/*/run-*")) != runs:
                outcome.lost.append(
                    f"{name} {how}: it was trained again: {scene.said()[-300:]}"
                )
        if tracebacks:
            outcome.misnamed.append(
                "a traceback: " + scene.said().strip().splitlines()[-1]
            )
    try:
        status = scene.status()
        if status is None or status.state != "done" or scene.learnt() != reference:
            outcome.lost.append(f"{name} {how}, and back: {status}")
    except Exception as error:
        outcome.lost.append(f"{name} {how}, and back: {error}")
    outcome.leaked += scene.left_processes() + scene.leftovers()
    return outcome


def said(outcome: Outcome) -> Outcome:
    """Print an outcome."""
    word = "survived" if outcome.survived else "FAILED"
    told = f": {outcome.reason}" if outcome.reason else ""
    print(
        f"{word}: {outcome.fault}, {outcome.strategy}, {outcome.phase}{told}",
        flush=True,
    )
    for what, words in (
        ("lost", outcome.lost),
        ("leaked", outcome.leaked),
        ("misnamed", outcome.misnamed),
    ):
        for each in words:
            print(f"    {what}: {each}", flush=True)
    return outcome
