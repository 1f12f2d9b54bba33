"""Create a study folder of any size with synthetic runs.

Times follow Amdahl's law with noise, losses decrease, and the values of every epoch differ.
"""

import random
from pathlib import Path

from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.config.point import Point
from scalestudy.store.records import EpochRecord, RankRecord, Result
from scalestudy.store.study_folder import RunFolder, StudyFolder

SAMPLES = 50_000
STUDY = """
task = "cnn"
[data]
source = "digits"
[train]
epochs = {epochs}
[sweep]
strategy = ["mirrored", "horovod"]
workers = [1, 2, 4, 8, 16]
seed = {seeds}
train.learning_rate = {rates}
"""


def make_study(folder: Path, runs: int, epochs: int, seeds: int = 5) -> StudyFolder:
    """Create a study folder whose `runs` points are all done.

    Args:
        folder: A folder that does not exist yet; the study file is written beside it.
        runs: Number of points, a multiple of ten times the seeds.
        epochs: Epochs per run.
        seeds: Seeds per combination of strategy, workers and learning rate.
    """
    rates = [round(1e-4 * 1.05**index, 8) for index in range(runs // (10 * seeds))]
    file = folder.parent / f"{folder.name}.toml"
    file.write_text(STUDY.format(epochs=epochs, seeds=list(range(seeds)), rates=rates))
    study = load_study(file)
    points = expand(study, gpus=0, cores=64)
    store = StudyFolder.create_or_open(folder, study, points, file.read_text())
    noise = random.Random(1)
    for point in points:
        write_run(store.path / "points" / point.name / "run-1", point, epochs, noise)
    return store


def write_run(run: Path, point: Point, epochs: int, noise: random.Random) -> None:
    """Write the files of a finished run, with empty logs and no model."""
    (run / "ranks").mkdir(parents=True)
    (run / "logs").mkdir()
    lines = [*_epochs(point, epochs, noise)]
    _write(run / "point.json", point)
    (run / "epochs.jsonl").write_text(
        "".join(line.model_dump_json() + "\n" for line in lines)
    )
    for rank in range(point.processes):
        _write(run / "ranks" / f"{rank}.json", _rank(rank, point))
        (run / "logs" / f"rank-{rank}.log").touch()
    _write(run / "result.json", _result(point, lines, noise))
    RunFolder(run).write_checksums()


def _write(file: Path, record: Point | Result | RankRecord) -> None:
    file.write_text(record.model_dump_json(indent=1))


def _epochs(point: Point, epochs: int, noise: random.Random) -> list[EpochRecord]:
    serial = 0.02 if point.strategy == "horovod" else 0.05
    seconds = 100 * (serial + (1 - serial) / point.workers) * noise.gauss(1, 0.02)
    found, elapsed = [], 0.0
    for epoch in range(1, epochs + 1):
        spent = seconds * noise.gauss(1, 0.01) * (1.3 if epoch == 1 else 1)
        elapsed += spent
        loss = 0.05 + 2.2 * 0.97**epoch * noise.gauss(1, 0.02)
        found.append(
            EpochRecord(
                epoch=epoch,
                steps=-(-SAMPLES // point.global_batch),
                samples=SAMPLES,
                learning_rate=point.train.learning_rate or 1e-3,
                loss=loss,
                train_seconds=spent,
                input_seconds=0.03 * spent,
                evaluation_seconds=0.05 * spent,
                elapsed_training_seconds=elapsed,
                validation={
                    "loss": loss * 1.1,
                    "accuracy": min(1.0, 0.97 - 0.3 * 0.97**epoch),
                },
            )
        )
    return found


def _result(point: Point, lines: list[EpochRecord], noise: random.Random) -> Result:
    seconds = lines[-1].elapsed_training_seconds
    steady = sum(line.train_seconds for line in lines[1:])
    quality = min(1.0, lines[-1].validation["accuracy"] + noise.gauss(0, 0.002))
    phases = {
        "start-up": 2.0,
        "framework": 3.1,
        "build": 0.7,
        "compile": 4.0 + noise.random(),
        "steps": 0.95 * seconds,
        "input": 0.03 * seconds,
        "evaluation": 0.05 * seconds,
    }
    return Result(
        name=point.name,
        strategy=point.strategy,
        implementation=point.implementation,
        communication="gloo",
        workers=point.workers,
        seed=point.seed,
        swept=point.swept,
        per_worker_batch=point.per_worker_batch,
        global_batch=point.global_batch,
        epochs=len(lines),
        updates=sum(line.steps for line in lines),
        samples_processed=SAMPLES * len(lines),
        training_samples=SAMPLES,
        throughput=SAMPLES * (len(lines) - 1) / steady if steady else None,
        steady_epochs=len(lines) - 1,
        training_seconds=seconds,
        wall_seconds=sum(phases.values()) + 1.0,
        phases=phases,
        metric="accuracy",
        better="higher",
        bounded=True,
        quality=quality,
        quality_labels=10_000,
        constant_quality=0.1,
        validation={"loss": lines[-1].validation["loss"], "accuracy": quality},
        best_quality=quality,
        best_epoch=len(lines),
        parameters=485_673,
        weights_digest=f"{noise.getrandbits(256):064x}",
        precision="float32",
        deterministic=True,
        model_missing="it was never trained",
        peak_memory_bytes=[
            900_000_000 + noise.randrange(10**7) for _ in range(point.processes)
        ],
        cpu_percent=[noise.uniform(90, 100) for _ in range(point.processes)],
        finished="2026-01-02T03:04:05+00:00",
    )


def _rank(rank: int, point: Point) -> RankRecord:
    return RankRecord(
        rank=rank,
        size=point.processes,
        local_rank=rank % 4,
        host=f"node{rank // 4:02d}",
        pid=4000 + rank,
        placement_source="slurm",
        cpus=list(range(8 * (rank % 4), 8 * (rank % 4) + 8)),
        threads=8,
        devices=["/physical_device:GPU:0"],
        device_uuids=[f"GPU-{rank:032x}"],
        versions={
            "python": "3.11.2",
            "tensorflow": "2.21.0",
            "keras": "3.15.0",
            "horovod": "0.28.1",
            "numpy": "2.3.4",
            "scalestudy": "0.1.0",
        },
        build={"cuda": "12.5", "cudnn": "9.3", "controllers": ["gloo", "mpi"]},
        driver="550.90",
        kernel="6.1.0",
        cpu_model="A made CPU",
        memory_bytes=2**38,
        environment={"OMP_NUM_THREADS": "8", "TF_CPP_MIN_LOG_LEVEL": "1"},
        environment_id="0123456789ab",
        environment_name="/opt/venv",
    )
