"""A damaged or later record: its point is not trained again, and each command says what to do."""

import json
import os
from pathlib import Path

import pytest

import made_diagnosis
from scalestudy.study.diagnosis import write_diagnosis
from scalestudy.study.records import RankRecord
from scalestudy.study.run_folder import RunFolder

RUN = "points/native-w1-s0/run-1"
DAMAGES = {
    "corrupt": lambda file: os.truncate(file, 60),
    "newer": lambda file: file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": 99})),
}


@pytest.fixture
def done(call, study: Path, launcher) -> Path:
    """The results folder of a study that has run."""
    assert call("run", study, "--no-report")[0] == 0
    launcher.ran = []
    return study.parent / "studies" / "study"


def write_ranks(run: RunFolder) -> None:
    for rank in range(run.point().processes):
        run.write_rank(RankRecord(
            rank=rank, size=run.point().processes, local_rank=rank, host="node1", pid=42, cpus=[0], threads=1,
            placement_source="local launcher", devices=["CPU:0"], versions={}, cpu_model="Made CPU",
            memory_bytes=2**30, kernel="Linux 6.1", environment={},
        ))  # fmt: skip


@pytest.mark.parametrize("word", DAMAGES)
@pytest.mark.parametrize("name", ["result.json", "point.json"])
def test_no_command_trains_it_again_and_each_says_so(
    call, study: Path, launcher, done: Path, word: str, name: str
) -> None:
    DAMAGES[word](done / RUN / name)
    before = {file: file.read_bytes() for file in (done / "points").rglob("*.json*")}
    code, _, errors = call("run", study, "--no-report")
    assert (code, launcher.ran) == (1, [])
    said = " ".join(errors.split())
    action = "Update scalestudy" if word == "newer" else "`scalestudy verify"
    for part in (f"native-w1-s0 is {word}, and left alone", name, action):
        assert part in said
    for command in (["status", done], ["report", done]):
        code, text, _ = call(*command)
        text = " ".join(text.split())
        assert code == 0
        assert word in text and name in text and action in text
    told = json.loads(call("report", done, "--format", "json")[1])
    states = {each["name"]: each["state"] for each in told["points"]}
    assert states == {"native-w1-s0": word, "native-w2-s0": "done"}
    assert {file: file.read_bytes() for file in (done / "points").rglob("*.json*")} == before


def test_a_damaged_diagnosis_is_found_too(call, done: Path) -> None:
    file = write_diagnosis(done, made_diagnosis.made())
    assert "diagnosis/horovod-w2-s0/diagnosis.json" not in call("verify", done)[1]
    os.truncate(file, 60)
    code, text, errors = call("verify", done)
    assert code == 1 and "diagnosis.json" in text + errors


def test_a_sound_study_is_verified_with_its_data(call, done: Path) -> None:
    for run in (done / "points").glob("*/run-1"):
        import zipfile

        with zipfile.ZipFile(run / "model.keras", "w") as archive:
            archive.writestr("model", "weights")
        write_ranks(RunFolder(run))
    code, text, _ = call("verify", done, "--format", "json")
    told = json.loads(text)
    assert (code, told["sound"]) == (0, True)
    found = {each["path"]: each["state"] for each in told["files"]}
    assert set(found.values()) == {"sound"}
    for name in (
        "study.json",
        "study.toml",
        f"{RUN}/result.json",
        f"{RUN}/epochs.jsonl",
        f"{RUN}/model.keras",
    ):
        assert name in found
    assert {Path(name).name for name in found} >= {
        "meta.json",
        "inputs.npy",
        "targets.npy",
        "split-default-0.json",
    }
    assert "all sound" in call("verify", done)[1]
    assert call("verify", done.parents[1] / "study.toml")[0] == 0


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("study.json", "corrupt"),
        ("study.toml", "corrupt"),
        (f"{RUN}/result.json", "corrupt"),
        (f"{RUN}/point.json", "corrupt"),
        (f"{RUN}/epochs.jsonl", "corrupt"),
        (f"{RUN}/owner.json", "corrupt"),
        ("inputs.npy", "corrupt"),
        ("meta.json", "corrupt"),
        ("split-default-0.json", "corrupt"),
    ],
)
def test_one_flipped_bit_is_found_wherever_it_is(call, done: Path, name: str, state: str) -> None:
    file = done / name
    if not file.exists():
        file = next((done.parents[1] / "cache").rglob(name))
    flip(file)
    code, text, _ = call("verify", done, "--format", "json")
    path = str(file.parent if name == "meta.json" else file)
    (damaged,) = [each for each in json.loads(text)["files"] if str(done / each["path"]) == path]
    assert code == 1
    assert damaged["state"] == state
    assert damaged["reason"]
    assert damaged["reason"] in call("verify", done)[1]


def test_an_array_that_cannot_even_be_opened_is_named(call, done: Path) -> None:
    (array,) = done.parent.parent.rglob("inputs.npy")
    array.write_bytes(b"noise")
    code, out, _ = call("verify", done)
    assert code == 1
    assert "inputs.npy" in out and "targets.npy" not in out


def test_a_model_or_epochs_that_are_gone_are_missing(call, done: Path) -> None:
    (done / RUN / "epochs.jsonl").unlink()
    code, text, _ = call("verify", done, "--format", "json")
    found = {each["path"]: each["state"] for each in json.loads(text)["files"]}
    assert code == 1
    assert (found[f"{RUN}/epochs.jsonl"], found[f"{RUN}/model.keras"]) == ("missing", "missing")


def test_a_line_torn_by_a_kill_is_sound_while_the_run_is_not_done(call, done: Path) -> None:
    (done / RUN / "result.json").unlink()
    with open(done / RUN / "epochs.jsonl", "a") as file:
        file.write('{"epoch": 3, "st')
    text = call("verify", done, "--format", "json")[1]
    assert {each["path"]: each["state"] for each in json.loads(text)["files"]}[
        f"{RUN}/epochs.jsonl"
    ] == "sound"


def test_what_is_no_study_is_refused(call, tmp_path: Path) -> None:
    code, _, errors = call("verify", tmp_path)
    assert code == 2
    assert "has no study.json" in errors


def test_the_record_of_a_rank_that_is_gone_is_missing(call, done: Path) -> None:
    write_ranks(RunFolder(done / RUN))
    (done / RUN / "ranks" / "0.json").unlink()
    code, text, _ = call("verify", done, "--format", "json")
    found = {each["path"]: each["state"] for each in json.loads(text)["files"]}
    assert (code, found[f"{RUN}/ranks/0.json"]) == (1, "missing")


def test_what_ranks_have_written_of_themselves_is_verified_too(call, done: Path) -> None:
    for folder in ("ranks", "causes"):
        (done / RUN / folder).mkdir(exist_ok=True)
        (done / RUN / folder / "0.json").write_text("{")
    found = {
        each["path"]: each["state"]
        for each in json.loads(call("verify", done, "--format", "json")[1])["files"]
    }
    assert [found[f"{RUN}/{folder}/0.json"] for folder in ("ranks", "causes")] == ["corrupt", "corrupt"]
