"""Why a point's efficiency is below 1: its twins run, and their times taken apart."""

import contextlib
import shutil

from scalestudy.conduct.listener import Listener
from scalestudy.features.diagnose.kept import Kept
from scalestudy.features.diagnose.plan import Planned
from scalestudy.features.diagnose.records import Terms, diagnosis_folder
from scalestudy.features.diagnose.twin import AblationTimes
from scalestudy.launch.base import Note
from scalestudy.study.point import Point
from scalestudy.study.store import StudyFolder

ROUNDS, SECONDS = 3, 2.0


def diagnose(
    planned: Planned,
    listener: Listener,
    *,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    trace: bool = False,
) -> Kept:
    """Run a point's twins here, and keep what they say in the study's folder.

    Args:
        planned: What is diagnosed.
        listener: Is told how far it is.
        rounds: How often everything is measured in turn.
        seconds: Length of a block of steps.
        trace: Whether to write a trace as well, and the engine's profile.

    Raises:
        UserError: If the study runs at the same time.
        RunError: If a twin fails.
        KeyboardInterrupt: On Ctrl-C, after all processes have ended.
    """
    from scalestudy.features.diagnose.diagnosed import diagnosed
    from scalestudy.features.diagnose.kept import kept
    from scalestudy.features.diagnose.records import write_diagnosis
    from scalestudy.features.diagnose.step_times import step_times
    from scalestudy.features.diagnose.trace import write_trace
    from scalestudy.features.diagnose.twins import Round, run_ablations
    from scalestudy.launch.local.run import terminable

    point, folder = planned.point, StudyFolder.open(planned.target)
    inside = diagnosis_folder(folder.path, point.name)
    found: list[Round] = []
    with folder.lock(), listener.computing(f"Diagnosing {point.name}", rounds) as on_progress:
        twins = inside / "twins"
        shutil.rmtree(twins, ignore_errors=True)
        twins.mkdir(parents=True)
        steps = run_ablations(point, twins, rounds=rounds, seconds=seconds, trace=trace)
        with terminable(), contextlib.closing(steps):
            while True:
                try:
                    step = next(steps)
                except StopIteration as end:
                    found = end.value
                    break
                if isinstance(step, Note):
                    listener.note(step.text)
                else:
                    on_progress(step)
    first = found[0]
    file = write_trace(inside / "trace.json", first.joined, first.apart) if trace else None
    diagnosis = diagnosed(
        _planned_point(folder, point), [step_times(each.joined, each.apart, point.workers) for each in found],
        first.apart, _terms(point, first.joined[0]), block_seconds=seconds,
        oversubscribed=first.oversubscribed,
        trace=file.name if file else None,
    )  # fmt: skip
    write_diagnosis(folder.path, diagnosis)
    return kept(diagnosis, folder, planned.findings.rows)


def _planned_point(folder: StudyFolder, point: Point) -> Point:
    """As the study's folder holds it, so that it is seen when that changes."""
    return next((each for each in folder.points() if each.name == point.name), point)


def _terms(point: Point, times: AblationTimes) -> Terms:
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.machine import cores, devices

    prepared = Prepared.open(point.needed_files().prepared)
    launch, train = point.launch, point.train
    on_gpus = launch.device != "cpu" and devices.gpus() > 0
    return Terms(
        device="gpu" if on_gpus else "cpu", cores=len(cores.granted()),
        cpus_per_worker=launch.cpus_per_worker,
        batch=train.batch, batch_size=train.batch_size, encoded=prepared.storage == "encoded",
        augmented_by_loader=bool(train.augment) and train.augment_on == "loader", xla=train.xla,
        steps_per_call=times.blocks[0].steps_per_call, bucket_size=launch.bucket_size,
        bucket_bytes=launch.bucket_bytes, communication=launch.communication,
        gradient_bytes=4 * times.parameters,
    )  # fmt: skip
