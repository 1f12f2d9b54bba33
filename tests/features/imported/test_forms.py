"""Forms other than plain tables: event files, results of JUBE, benchmarks, MLPerf, JSON, Parquet, our own."""

import json
from pathlib import Path

import pytest
from made import seeded

from scalestudy.analysis.findings import analyse
from scalestudy.errors import UserError
from scalestudy.features.imported.gather import gather
from scalestudy.features.imported.wire import BrokenError, checksum, fields
from scalestudy.report.tabular import to_csv, to_json

FILES = Path(__file__).parent / "files"

# Event files: written by Keras 3.15's callback with TensorFlow 2.21 and TensorBoard 2.20, beside keras_4.csv,
# and by the FileWriter of TensorFlow 1.


def test_event_files_of_keras_say_what_its_csv_log_does():
    run = gather([str(FILES / "run-4gpus")]).runs[0]
    logged = gather([str(FILES / "keras_4.csv")]).runs[0]
    assert run.result.workers == 4
    assert (run.result.quality, run.result.metric) == (logged.result.quality, "accuracy")
    for ours, theirs in zip(run.epochs, logged.epochs, strict=True):
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-6)
        assert ours.validation == pytest.approx(theirs.validation, rel=1e-6)


def test_times_of_epochs_are_those_between_events_and_the_first_is_not_known():
    run = gather([str(FILES / "run-4gpus")]).runs[0]
    assert run.epochs[0].train_seconds is None
    assert all(epoch.train_seconds and epoch.train_seconds > 0 for epoch in run.epochs[1:])


def test_a_run_is_its_folder_however_it_is_named():
    for path in ("run-4gpus/train", "run-4gpus/validation/*", "run-4gpus"):
        found = gather([str(FILES / path)])
        assert [run.source.file for run in found.runs if run.source] == ["run-4gpus"], path


def test_simple_values_of_old_event_files_are_read():
    run = gather([str(FILES / "old-2gpus")]).runs[0]
    assert [epoch.loss for epoch in run.epochs] == pytest.approx([1.0, 0.9, 0.8])
    assert run.result.quality == pytest.approx(0.7)


def test_an_event_file_that_is_damaged_or_cut_off_gives_what_stands_before(tmp_path: Path):
    data = next((FILES / "old-2gpus").iterdir()).read_bytes()
    path = tmp_path / "w2" / "events.out.tfevents.1.node01"
    path.parent.mkdir()
    path.write_bytes(data[:-10])
    assert gather([str(path)]).runs[0].result.epochs == 2
    path.write_bytes(data[:-10] + b"\xff" + data[-9:])
    found = gather([str(path)])
    assert found.runs[0].result.epochs == 2
    assert "a record is not what was written" in " ".join(found.readings)


def test_the_checksum_is_crc_32c():
    assert checksum(b"123456789") == 0xE3069283  # the check value of its catalogue
    assert checksum(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    with pytest.raises(BrokenError):
        list(fields(b"\x0a\xff"))


def test_json_lines_and_lists_are_read_with_nested_names(read):
    rows = [{"gpus": n, "time_s": 100 / n, "config": {"xla": n > 0}, "log": [1]} for n in (1, 2)]
    lines = "\n".join([*map(json.dumps, rows), "{", "[1]"])
    found = read({"a.jsonl": lines})
    assert [run.result.training_seconds for run in found.runs] == [100, 50]
    assert "line 3: no JSON object" in found.readings[1]
    assert [run.result.workers for run in read({"b.json": json.dumps(rows)}).runs] == [1, 2]
    with pytest.raises(UserError, match="one that is broken"):
        read({"c.json": "[{"})


def test_parquet_is_read(tmp_path: Path):
    import polars as pl

    path = tmp_path / "t.parquet"
    pl.DataFrame({"gpus": [1, 8], "img/s": [66176.0, 486914.0]}).write_parquet(path)
    assert [run.result.throughput for run in gather([str(path)]).runs] == [66176, 486914]
    path.write_bytes(b"PAR1" + bytes(40))
    with pytest.raises(UserError, match="a Parquet file"):
        gather([str(path)])


@pytest.mark.parametrize("name", ["table.csv", "table.json"])
def test_our_own_tables_come_back_with_their_means_and_swept_keys(read, name: str):
    findings = analyse("ours", seeded((1, 2, 4), ("horovod",), swept={"train.xla": True}))
    found = read({name: to_csv(findings.rows) if name == "table.csv" else to_json(findings)})
    back = analyse("theirs", found.runs).rows
    assert [row.key for row in back] == [row.key for row in findings.rows]
    for row, before in zip(back, findings.rows, strict=True):
        assert row.throughput.value == pytest.approx(before.throughput.value)
        assert row.quality.value == pytest.approx(before.quality.value)
        assert (row.metric, row.global_batch) == (before.metric, before.global_batch)
    assert "3 rows are means of several runs, whose intervals cannot be taken" in found.readings[0]
