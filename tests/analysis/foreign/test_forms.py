"""Forms other than plain tables: event files, results of JUBE, benchmarks, MLPerf, JSON, Parquet, our own."""

import json
from pathlib import Path

import pytest
from made import seeded

from scalestudy.analysis.findings import analyse
from scalestudy.analysis.foreign.gather import gather
from scalestudy.analysis.foreign.wire import BrokenError, checksum, fields
from scalestudy.errors import UserError
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


JUBE = """\
result:
| nodes | gpus | runtime_avg[s] | acc |
|-------|------|----------------|-----|
|     1 |    4 |          100.5 | .91 |
|     2 |    8 |           52.0 | .90 |
"""
OLDER = """\
gpus | time[min]
-----+----------
   4 |      1.5
   8 |      0.8
"""


def test_tables_of_jube_are_read_as_they_are_printed(read):
    found = read({"result.dat": JUBE})
    assert [(run.result.workers, run.result.training_seconds) for run in found.runs] == [
        (4, 100.5),
        (8, 52.0),
    ]
    assert str(found.runs[1].source) == "result.dat, line 5"
    assert read({"older.txt": OLDER}).runs[0].result.training_seconds == 90


TF_CNN = """\
TensorFlow:  1.15
Model:       resnet50
Dataset:     imagenet (synthetic)
Mode:        training
Batch size:  {batch} global
             64.0 per device
Devices:     [{devices}]
Variables:   {variables}
Step\tImg/sec\ttotal_loss
1\timages/sec: 340.1 +/- 0.0 (jitter = 0.0)\t8.22
10\timages/sec: 341.2 +/- 0.2 (jitter = 0.4)\t8.01
----------------------------------------------------------------
total images/sec: {rate}
----------------------------------------------------------------
"""


def tf_cnn(count: int, rate: float, where: str = "/gpu:", variables: str = "replicated") -> str:
    devices = ", ".join(f"'{where}{place}'" for place in range(count))
    return TF_CNN.format(batch=64 * count, devices=devices, rate=rate, variables=variables)


def test_output_of_tf_cnn_benchmarks_has_its_rate_batch_and_devices(read):
    found = read({"out.txt": tf_cnn(1, 341.5) + tf_cnn(8, 2690.25)})
    assert [(r.result.workers, r.result.throughput, r.result.global_batch) for r in found.runs] == [
        (1, 341.5, 64),
        (8, 2690.25, 512),
    ]
    assert [run.source.lines for run in found.runs if run.source] == [(10, 13), (24, 27)]
    assert found.runs[0].result.strategy == "replicated"
    assert "synthetic" in found.readings[0]
    horovod = read({"out.txt": tf_cnn(4, 1300.0, "horovod/gpu:", "horovod")}).runs[0].result
    assert (horovod.strategy, horovod.workers) == ("horovod", 4)


def test_a_benchmark_that_did_not_end_gives_the_mean_of_its_steps(read):
    found = read({"out_gpus_2.txt": tf_cnn(2, 1.0).partition("-----")[0]})
    assert found.runs[0].result.throughput == pytest.approx((340.1 + 341.2) / 2)
    assert "no total" in found.readings[0]


def mlperf(*events: tuple[str, object, int, dict[str, object]]) -> str:
    lines = [
        ":::MLLOG " + json.dumps({"key": key, "value": value, "time_ms": time, "metadata": metadata})
        for key, value, time, metadata in events
    ]
    return "\n".join(["starting", *lines, ":::MLLOG {broken", ""])


EVENTS = (
    ("seed", 7, 0, {}), ("global_batch_size", 3264, 0, {}), ("train_samples", 1281167, 0, {}),
    ("eval_samples", 50000, 0, {}), ("number_of_nodes", 2, 0, {}), ("accelerators_per_node", 8, 0, {}),
    ("opt_base_learning_rate", 10.5, 0, {}), ("run_start", None, 1_000, {}),
    ("eval_accuracy", 0.61, 300_000, {"epoch_num": 4}), ("eval_accuracy", 0.7593, 900_000, {"epoch_num": 36}),
    ("run_stop", None, 961_000, {"status": "success"}),
)  # fmt: skip


def test_an_mlperf_log_has_its_time_quality_batch_and_accelerators(read):
    found = read({"result_0.txt": mlperf(*EVENTS)})
    run = found.runs[0]
    assert (run.result.workers, run.result.seed, run.result.training_seconds) == (16, 7, 960)
    assert (run.result.quality, run.result.metric, run.result.epochs) == (0.7593, "accuracy", 36)
    assert (run.result.global_batch, run.result.training_samples, run.result.quality_labels) == (
        3264,
        1281167,
        50000,
    )
    assert "line 13: no JSON" in " ".join(found.readings)


def test_an_mlperf_run_that_was_aborted_or_never_ended_is_refused(read):
    aborted = (*EVENTS[:-1], ("run_stop", None, 961_000, {"status": "aborted"}))
    with pytest.raises(UserError, match="which says aborted"):
        read({"result_0.txt": mlperf(*aborted)})
    with pytest.raises(UserError, match="run_start and run_stop"):
        read({"result_0.txt": mlperf(*EVENTS[:-1])})


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
