"""Study folders: each record truncated, emptied, altered or replaced."""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from hostile.case import Case
from hostile.study_files import damaged

RUN = "points/native-w1-s0/run-1"
RECORDS = (
    "study.json",
    "study.toml",
    f"{RUN}/point.json",
    f"{RUN}/result.json",
    f"{RUN}/launcher.json",
    f"{RUN}/epochs.jsonl",
    f"{RUN}/ranks/0.json",
    "points/native-w2-s0/run-1/failure.json",
    "points/native-w2-s0/run-1/progress.json",
)
COMMANDS = (
    ["status", "results"],
    ["report", "results"],
    ["status", "--verify", "results"],
    ["run", "study.toml", "--dry-run", "--out", "results"],
)
TEXT = 'task = "cnn"\n[train]\nbatch_size = 32\n[sweep]\nworkers = [1, 2]\nseed = 0\n'


def _json(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def act(file: Path) -> None:
        lines = (
            file.read_text().split("\n")
            if file.suffix == ".jsonl"
            else [file.read_text()]
        )
        try:
            table = json.loads(lines[0])
        except ValueError:
            file.write_text("[[[[")
            return
        table.pop("sha256", None)
        change(table)
        file.write_text("\n".join([json.dumps(table), *lines[1:]]))

    return act


def _change(table: dict[str, Any], kind: type, value: object) -> None:
    table |= {key: value for key, each in table.items() if isinstance(each, kind)}


def _strings(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strings(each) for key, each in value.items()}
    return "\0" if isinstance(value, str) else value


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def act(file: Path) -> None:
        file.unlink()
        make(file)

    return act


def _replaced_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.touch()


def _pipe(file: Path) -> None:
    file.parent.mkdir()
    os.mkfifo(file)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: os.truncate(file, file.stat().st_size // 2),
    "empty": lambda file: os.truncate(file, 0),
    "garbage": lambda file: file.write_bytes(bytes(range(256))),
    "nul": lambda file: file.write_bytes(b"\0" * file.stat().st_size),
    "a list": lambda file: file.write_text("[]\n"),
    "a number": lambda file: file.write_text("7" * 5000),
    "deep": lambda file: file.write_text("[" * 50_000 + "]" * 50_000),
    "newer": _json(lambda table: table.update(schema_version=99)),
    "no workers": _json(lambda table: table.update(workers=0, epochs=0, seed=-1)),
    "numbers as texts": _json(lambda table: _change(table, int, "x")),
    "infinite": _json(lambda table: _change(table, float, float("inf"))),
    "null": _json(lambda table: table.update(dict.fromkeys(table))),
    "nul in texts": _json(lambda table: table.update(_strings(table))),
    "a folder": _replaced(Path.mkdir),
    "a pipe": _replaced(os.mkfifo),
    "a loop": _replaced(lambda file: file.symlink_to(file)),
    "a device": _replaced(lambda file: file.symlink_to("/dev/zero")),
    "gone": Path.unlink,
    "unreadable": lambda file: file.chmod(0),
}
ODD: dict[str, Callable[[Path], object]] = {
    "run-²": lambda folder: (folder / "points/native-w1-s0/run-²").mkdir(),
    "run of many digits": lambda folder: (
        folder / f"points/native-w1-s0/run-{'9' * 200}"
    ).mkdir(),
    "run is a file": lambda folder: (folder / "points/native-w1-s0/run-2").touch(),
    "run is a loop": lambda folder: (folder / "points/native-w1-s0/run-2").symlink_to(
        "run-2"
    ),
    "run is empty": lambda folder: (folder / "points/native-w1-s0/run-2").mkdir(),
    "points is a file": lambda folder: _replaced_folder(folder / "points"),
    "surrogate": lambda folder: os.mkdir(os.fsencode(folder) + b"/points/\xff"),
    "ranks is a file": lambda folder: _replaced_folder(folder / RUN / "ranks"),
    "logs is a file": lambda folder: (folder / RUN / "logs").touch(),
    "log is a pipe": lambda folder: _pipe(folder / RUN / "logs/rank-0.log"),
    "job is a folder": lambda folder: (folder / RUN / "job.json").mkdir(),
    "exit is a pipe": lambda folder: os.mkfifo(
        folder / "points/native-w2-s0/run-1/exit"
    ),
    "unreadable points": lambda folder: (folder / "points").chmod(0),
    "unreadable run": lambda folder: (folder / RUN).chmod(0),
    "queue is a folder": lambda folder: (folder / "queue-slurm.json").mkdir(),
    "lock is a folder": lambda folder: (folder / "lock").mkdir(),
}


def cases(random: random.Random, made: Path) -> Iterator[Case]:
    for record in RECORDS:
        for word, act in DAMAGES.items():
            for command in COMMANDS:
                name = f"{record.removeprefix('points/')} {word}, {command[0]}"
                change = partial(_record, record, act)
                yield Case(
                    "study folder: record",
                    name,
                    partial(_copied, made, change, command),
                    ordinary=word == "unreadable",
                )
        for number in range(3):
            change = partial(_flipped, record, random.getrandbits(32))
            command = COMMANDS[number]
            name = f"{record.removeprefix('points/')} damaged {number}, {command[0]}"
            yield Case(
                "study folder: record", name, partial(_copied, made, change, command)
            )
    for word, act in ODD.items():
        for command in (
            *COMMANDS,
            ["logs", "results", "native-w1-s0"],
            ["cancel", "results"],
        ):
            build = partial(_copied, made, act, command)
            yield Case(
                "study folder: place",
                f"{word}, {command[0]}",
                build,
                ordinary=word.startswith("unreadable"),
            )


def make(folder: Path) -> None:
    """Create the results folder of a study with two points: one done, one failed."""
    from scalestudy.config.expand import expand
    from scalestudy.config.parse import load_study
    from scalestudy.store.records import (
        EpochRecord,
        Failure,
        Progress,
        RankRecord,
        Result,
    )
    from scalestudy.store.study_folder import StudyFolder

    (folder / "study.toml").write_text(TEXT)
    study = load_study(folder / "study.toml")
    points = expand(study, gpus=0, cores=8)
    store = StudyFolder.create_or_open(folder / "results", study, points, TEXT)
    done, failed = (store.new_run(point) for point in points)
    for number in (1, 2):
        done.append_epoch(
            EpochRecord(
                epoch=number,
                steps=2,
                samples=16,
                learning_rate=0.1,
                loss=1.0 / number,
                train_seconds=1.0,
                input_seconds=0.0,
                elapsed_training_seconds=float(number),
                validation={"loss": 1.0},
            )
        )
    done.write_rank(
        RankRecord(
            rank=0,
            size=1,
            local_rank=0,
            host="a",
            pid=1,
            placement_source="single",
            cpus=[0],
            threads=1,
            devices=[],
            versions={"Python": "3"},
        )
    )
    done.write_result(
        Result(
            name=points[0].name,
            strategy="native",
            implementation="single",
            workers=1,
            seed=0,
            per_worker_batch=32,
            global_batch=32,
            epochs=2,
            updates=4,
            samples_processed=32,
            training_samples=16,
            throughput=100.0,
            steady_epochs=1,
            training_seconds=3.0,
            wall_seconds=5.0,
            phases={},
            metric="accuracy",
            quality=0.5,
            best_quality=0.5,
            best_epoch=2,
            parameters=10,
            weights_digest="0",
            finished="2020-01-01T00:00:00+00:00",
        )
    )
    failed.write_progress(
        Progress(phase="training", epoch=1, epochs=2, step=1, steps=2, updated=0.0)
    )
    failed.write_failure(Failure(rank=0, exit_code=1, reason="rank 0 gave up"))


def _copied(
    made: Path, change: Callable[[Path], object], command: list[str], folder: Path
) -> list[str]:
    shutil.copytree(made, folder, dirs_exist_ok=True)
    change(folder / "results")
    return command


def _record(record: str, act: Callable[[Path], object], folder: Path) -> None:
    act(folder / record)


def _flipped(record: str, seed: int, folder: Path) -> None:
    file = folder / record
    file.write_bytes(damaged(file.read_bytes(), random.Random(seed)))
