"""The local launcher, which runs one point after another on this machine."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

from scalestudy.config.expand import expand
from scalestudy.config.file import Study
from scalestudy.config.point import Point
from scalestudy.config.settings import DEFAULT_LAUNCHER
from scalestudy.hardware import cores, devices
from scalestudy.hardware.no_gpus import driver_is_dead, why_unseen
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.launcher import (
    Note,
    Options,
    Overview,
    Step,
)
from scalestudy.launch.local_run import reserve_here, run_steps
from scalestudy.launch.reserve import refuse_open_ports
from scalestudy.launch.stop_signal import stoppable
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError
from scalestudy.util.text import plural


def points_here(study: Study) -> list[Point]:
    """Return the points of a study, expanded for this machine.

    Raises:
        UserError: If a point is impossible here, or no requested GPU is visible, with the likely reason.
    """
    gpus = devices.gpus()
    # A sweep may ask for GPUs in some of its points only.
    asked = [study.launch.device, *study.sweep.other.get("launch.device", ())]
    # "auto" means CPUs where there is no GPU, but not where only its driver fails: nobody would notice.
    if not gpus and ("gpu" in asked or ("auto" in asked and driver_is_dead())):
        reason = why_unseen()
        device = "auto"
        if "gpu" in asked:
            device = "gpu"
        raise UserError(
            f'a GPU for launch.device = "{device}"',
            f"none{study.place.of('launch.device')}: {reason.words}",
            reason.action,
        )
    return expand(
        study,
        gpus=gpus,
        cores=len(cores.granted()),
        capability=devices.lowest_capability(),
        node_gpus=devices.gpus_of_node(),
    )


class LocalLauncher:
    """Runs points on this machine, within this process's lifetime."""

    title = "this machine"
    detached = False
    checked = False
    # In the class, so that the launcher of several hosts replaces them.
    reserve = staticmethod(reserve_here)
    guard = staticmethod(refuse_open_ports)

    def points(self, study: Study, options: Options) -> list[Point]:
        """Return the points of a study, expanded for this machine's devices and cores.

        Raises:
            UserError: If a point is impossible here, or names another launcher.
        """
        points = points_here(study)
        elsewhere = [
            point.launch.on for point in points if point.launch.on != DEFAULT_LAUNCHER
        ]
        if elsewhere:
            raise UserError(
                f'launch.on = "{DEFAULT_LAUNCHER}" for `scalestudy run`',
                f'"{elsewhere[0]}"{study.place.of("launch.on")}',
                f'Set on = "{DEFAULT_LAUNCHER}" to run on this machine.',
            )
        self.guard(points)
        return points

    def refuse(self, points: Sequence[Point]) -> None:
        """Refuse points that this machine's software cannot run."""
        refuse_missing_software(points)

    def start(
        self,
        folder: StudyFolder,
        points: Sequence[Point],
        options: Options,
    ) -> Generator[Step, None, None]:
        """Run points one after another, even if one fails.

        Raises:
            KeyboardInterrupt: On Ctrl-C or SIGTERM, after all workers have ended.
        """
        if note := self.guard(points):
            yield note
        with stoppable() as stop:
            for point in points:
                yield from run_steps(folder, point, self.reserve, stop)
                # The run has ended at a checkpoint, as the signal asked: no other is begun.
                if stop.number:
                    raise KeyboardInterrupt

    def dry_run(
        self,
        target: Path,
        study: Study,
        points: Mapping[str, Point],
        overview: Overview,
        options: Options,
    ) -> Iterator[str | Note]:
        """Yield a line for every point."""
        for status in overview.points:
            point = status.point
            note = ""
            if point.oversubscribed:
                note = f"  (oversubscribed: {point.oversubscribed})"
            batch = f"{point.implementation}, global batch {point.global_batch}"
            epochs = point.train.epochs
            length = f"{epochs} {plural('epoch', epochs)}"
            cpus = point.launch.cpus_per_worker
            cores_held = f"{cpus} {plural('core', cpus)} per worker"
            state: str = status.state
            if status.disturbed:
                state += f" (disturbed: {status.disturbed})"
            yield f"{point.name}  {state}  {batch}, {length}, {cores_held}{note}"
        yield f"{len(overview.points)} points, {len(points)} to run, results in {target}"
