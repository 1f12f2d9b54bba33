"""`status --verify` names every file of a finished run that has changed since it was written."""

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from scalestudy.store.records import RankRecord
from scalestudy.store.run_folder import RunFolder

POINT = "points/native-w1-s0"
RUN = f"{POINT}/run-1"


@pytest.fixture
def done(call, study: Path, launcher) -> Path:
    """The results folder of a finished study, with models and rank records."""
    assert call("run", study, "--no-report")[0] == 0
    folder = study.parent / "studies" / "study"
    for path in (folder / "points").glob("*/run-1"):
        run = RunFolder(path)
        with zipfile.ZipFile(run.model, "w") as archive:
            archive.writestr("model", "weights")
        for rank in range(run.point().processes):
            run.write_rank(
                RankRecord(
                    rank=rank,
                    size=run.point().processes,
                    local_rank=rank,
                    host="node1",
                    pid=42,
                    cpus=[0],
                    threads=1,
                    placement_source="local launcher",
                    devices=["CPU:0"],
                    versions={},
                )
            )
        run.write_checksums()
    return folder


@pytest.fixture
def verified(call, done: Path) -> Callable[[], tuple[int, dict[str, str]]]:
    """Verify the folder: return the exit code and, by path, the states of files that are not sound."""

    def states() -> tuple[int, dict[str, str]]:
        code, text, _ = call("status", "--verify", done, "--format", "json")
        record = json.loads(text)
        assert record["sound"] == (code == 0)
        return code, {
            file["path"]: file["state"]
            for file in record["files"]
            if file["state"] != "sound"
        }

    return states


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def loop(file: Path) -> None:
    remove(file)
    file.symlink_to(file.name)


def remove(file: Path) -> None:
    shutil.rmtree(file) if file.is_dir() else file.unlink()


def file_instead(file: Path) -> None:
    remove(file)
    file.touch()


def test_a_sound_study_is_verified_with_its_data(call, done: Path, verified) -> None:
    assert verified() == (0, {})
    text = call("status", "--verify", done, "--format", "json")[1]
    names = {file["path"] for file in json.loads(text)["files"]}
    in_run = ("result.json", "point.json", "epochs.jsonl", "model.keras", "ranks.jsonl")
    assert names >= {"study.json", "study.toml", *(f"{RUN}/{name}" for name in in_run)}
    assert {Path(name).name for name in names} >= {
        "meta.json",
        "inputs.npy",
        "targets.npy",
        "split-default-0.json",
    }
    assert call("status", "--verify", done.parents[1] / "study.toml")[0] == 0


@pytest.mark.parametrize(
    ("name", "change", "state"),
    [
        ("study.json", lambda file: os.truncate(file, 60), "corrupt"),
        ("study.json", remove, "missing"),
        ("study.toml", flip, "corrupt"),
        ("study.toml", remove, "missing"),
        ("points", file_instead, "corrupt"),
        (POINT, loop, "corrupt"),
        (POINT, file_instead, "corrupt"),
        (f"{RUN}/result.json", flip, "corrupt"),
        (f"{RUN}/result.json", remove, "missing"),
        (f"{RUN}/result.json", loop, "missing"),
        (f"{RUN}/point.json", flip, "corrupt"),
        (f"{RUN}/point.json", remove, "missing"),
        (f"{RUN}/epochs.jsonl", flip, "corrupt"),
        (f"{RUN}/epochs.jsonl", lambda file: os.truncate(file, 100), "corrupt"),
        (f"{RUN}/epochs.jsonl", remove, "missing"),
        (f"{RUN}/model.keras", flip, "corrupt"),
        (f"{RUN}/model.keras", remove, "missing"),
        (f"{RUN}/ranks.jsonl", flip, "corrupt"),
        (f"{RUN}/ranks.jsonl", remove, "missing"),
        (f"{RUN}/launcher.json", lambda file: os.truncate(file, 20), "corrupt"),
        (f"{RUN}/SHA256SUMS", remove, "missing"),
        (f"{RUN}/SHA256SUMS", lambda file: file.write_text("noise"), "corrupt"),
        ("inputs.npy", flip, "corrupt"),
        ("split-default-0.json", lambda file: os.truncate(file, 60), "corrupt"),
    ],
)
def test_one_change_is_found_wherever_it_is(
    done: Path, verified, name: str, change, state: str
) -> None:
    file = done / name
    if not os.path.lexists(file):
        file = next((done.parents[1] / "cache").rglob(name))
    change(file)
    path = name if file == done / name else str(file)
    assert verified() == (1, {path: state})


def test_a_run_under_way_may_have_a_torn_last_epoch(done: Path, verified) -> None:
    for name in ("result.json", "SHA256SUMS"):
        (done / RUN / name).unlink()
    with open(done / RUN / "epochs.jsonl", "a") as file:
        file.write('{"epoch": 3, "st')
    assert verified() == (0, {})


def test_records_without_a_checksum_are_parsed(done: Path, verified) -> None:
    diagnosis = done / "diagnosis" / "native-w2-s0" / "diagnosis.json"
    diagnosis.parent.mkdir(parents=True)
    diagnosis.write_text("{}")
    assert verified() == (0, {})
    diagnosis.write_text("{")
    (done / RUN / "causes").mkdir()
    (done / RUN / "causes" / "0.json").write_text("{")
    assert verified() == (
        1,
        {
            "diagnosis/native-w2-s0/diagnosis.json": "corrupt",
            f"{RUN}/causes/0.json": "corrupt",
        },
    )


def test_the_table_names_what_is_wrong(call, done: Path) -> None:
    assert "all sound" in call("status", "--verify", done)[1]
    flip(done / RUN / "result.json")
    code, text, _ = call("status", "--verify", done)
    assert (
        code == 1 and f"{RUN}/result.json: corrupt" in text and "all sound" not in text
    )


def test_what_is_no_study_is_refused(call, tmp_path: Path) -> None:
    assert call("status", "--verify", tmp_path)[0] == 2
