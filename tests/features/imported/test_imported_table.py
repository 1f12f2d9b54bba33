"""Imported tables, and logs of one run."""

import json
from pathlib import Path

import pytest

from published import TABLES, column
from scalestudy.analysis.findings import analyse
from scalestudy.features.imported.gather import gather
from scalestudy.features.imported.imported_columns import LogName, parse_name
from scalestudy.report.formats import to_json
from scalestudy.util.errors import UserError

ROWS = [
    {"strategy": "ddp", "gpus": 1, "seed": 3, "seconds": 570.0, "val_accuracy": 0.91, "global_batch": 32},
    {"strategy": "ddp", "gpus": 4, "seed": 3, "seconds": 180.0, "val_accuracy": 0.9, "global_batch": 128},
]


def write(path: Path) -> Path:
    """Write the same table in the format of the path's extension."""
    import polars as pl

    if path.suffix == ".json":
        path.write_text(json.dumps(ROWS))
    else:
        pl.DataFrame(ROWS).write_csv(path)
    return path


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_table_says_the_same_in_each_of_its_forms(tmp_path: Path, ending: str):
    results = [run.result for run in gather([str(write(tmp_path / f"t.{ending}"))]).runs]
    assert [
        (r.strategy, r.workers, r.seed, r.training_seconds, r.metric, r.quality, r.per_worker_batch)
        for r in results
    ] == [("ddp", 1, 3, 570.0, "accuracy", 0.91, 32), ("ddp", 4, 3, 180.0, "accuracy", 0.9, 32)]
    assert len({result.name for result in results}) == 2


@pytest.mark.filterwarnings("error")
def test_times_and_qualities_at_the_limits_are_reported_without_an_error(read):
    rows = "1,0,1e14,1e14\n1,1,2e-9,-1e15\n2,0,2e-9,1e-300\n2,1,1e308,1\n2,2,1e-308,1\n4,0,1e14,0\n"
    imported = read({"t.csv": "workers,seed,training_seconds,quality\n" + rows})
    assert len(imported.runs) == 4
    assert json.loads(to_json(analyse("t", imported.runs)))["rows"]


def test_runs_of_a_csv_file_name_their_line_and_columns_without_a_name_are_not_used(read):
    imported = read({"t.csv": "# by hand\ngpus,seconds,,\n1,9,,\n\n4,3,,\n"})
    assert [run.result.workers for run in imported.runs] == [1, 4]
    assert [str(run.source) for run in imported.runs] == ["t.csv, line 3", "t.csv, line 5"]


def test_rows_that_cannot_be_read_are_left_out_and_named(read):
    text = "gpus,seconds\n1,100\n2\nfour,9\n2.5,9\n8,nan\n16,-3\n32,inf\n2,1e308\n2,1e-308\n2,66 176\n4,30\n"
    imported = read({"t.csv": text})
    assert [run.result.workers for run in imported.runs] == [1, 4]
    (skipped,) = [said for said in imported.readings if said.startswith("t.csv: left out")]
    assert skipped.count("line ") == 8
    assert "and 1 more" in skipped


@pytest.mark.parametrize(
    ("files", "action"),
    [
        ({"t.csv": "a,seconds\n1,2\n"}, "--column workers=NAME"),
        ({"t.csv": "gpus,a\n1,2\n"}, "--column training_seconds=NAME"),
        ({"t.csv": "gpus,seconds,iou,dice\n1,2,.5,.6\n"}, "--metric iou"),
        ({"t.csv": "gpus,seconds,a,a\n1,2,3,4\n"}, "Rename a column."),
        ({"t.json": '[{"gpus": 1, "seconds": 2, "gpus": 4}]'}, "Rename a column."),
        ({"t.csv": "gpus,epoch,epoch_time\n1,1,3\n1,1,3\n"}, "a column `seed`"),
        ({"t.csv": "gpus,seconds\n"}, "Name another file."),
        ({"t.csv": "gpus,seconds\nx,1\n"}, "Correct its rows."),
        ({"t.json": "[{"}, "Correct the file."),
        ({"t.json": "[1]"}, "or as CSV."),
        ({"log.csv": "epoch,loss\n0,1\n"}, "--workers N"),
        ({"t.csv": "gpus,seconds\n1,2\n".encode("utf-16")}, "Save it as UTF-8."),
    ],
)
def test_a_file_that_is_broken_or_leaves_a_question_is_refused_with_the_way_out(read, files, action):
    with pytest.raises(UserError) as refused:
        read(files)
    assert action in refused.value.action


def test_a_metric_names_a_column_or_what_quality_is_and_else_is_refused(read):
    text = "gpus,seconds,quality,val_iou\n1,2,.5,.7\n"

    def quality(**options):
        result = read({"t.csv": text}, **options).runs[0].result
        return result.metric, result.quality

    assert quality(metric="iou") == ("iou", 0.7)
    assert quality(metric="dice") == ("dice", 0.5)
    assert quality(metric="badness", better="lower") == ("badness", 0.5)
    with pytest.raises(UserError, match=r"gpus, seconds, quality, val_iou.*--metric"):
        quality(metric="badness")


def test_columns_with_a_dot_are_swept_and_no_others(read):
    imported = read({"t.csv": "gpus,train.xla,nodes,seconds\n1,true,1,10\n1,false,1,12\n"})
    assert [run.result.swept for run in imported.runs] == [{"train.xla": True}, {"train.xla": False}]
    assert "Not used: nodes." in imported.readings[0]


@pytest.mark.parametrize("name", ["batch_size", "per_worker_batch", "global_batch"])
def test_rows_with_other_batches_are_other_rows_unless_they_grow_with_the_workers(read, name: str):
    rows = "".join(
        f"{workers},{batch},{seed},9\n" for workers in (1, 2) for batch in (32, 64) for seed in (0, 1)
    )
    imported = read({"t.csv": f"gpus,{name},seed,seconds\n{rows}"})
    assert [run.result.swept[name] for run in imported.runs] == [32, 32, 64, 64] * 2
    assert [row.runs for row in analyse("t", imported.runs).rows] == [2, 2, 2, 2]
    growing = read({"t.csv": "gpus,global_batch,seconds\n1,32,9\n2,64,5\n"})
    assert [run.result.swept for run in growing.runs] == [{}, {}]


def test_a_table_may_have_a_row_for_each_epoch_of_several_runs(read):
    text = "strategy,workers,seed,epoch,epoch_seconds,loss,val_loss,val_iou\n" + "".join(
        f"horovod,{n},{seed},{epoch},{8 / n + (epoch == 0)},{1 / (1 + epoch)},0.6,0.{5 + epoch}\n"
        for epoch in range(3)
        for n in (1, 2)
        for seed in (0, 1)
    )
    runs = {(run.result.workers, run.result.seed): run for run in read({"t.csv": text}).runs}
    assert set(runs) == {(1, 0), (1, 1), (2, 0), (2, 1)}
    run = runs[2, 1]
    assert (run.result.epochs, run.result.training_seconds, run.result.quality) == (3, 13.0, 0.7)
    assert [epoch.validation for epoch in run.epochs][1] == {"loss": 0.6, "iou": 0.6}
    assert [epoch.elapsed_training_seconds for epoch in run.epochs] == [5, 9, 13]


def published_log(workers: int, seconds: float, speedup: float, iou: float) -> str:
    """A log in the published format: pandas' index, and the total time and IoU in every row."""
    rows = [",time_per_epoch,loss,lr,training_time,test_time,iou"]
    for epoch in range(4):
        time = 37.58 / speedup * (1 if epoch else 5)
        rows.append(f"{epoch},{time:.6f},{0.4 / (1 + epoch):.6f},{0.001 * workers},{seconds},1.5,{iou}")
    return "\n".join(rows) + "\n"


def published_logs() -> dict[str, str]:
    files = {}
    for n, *row in TABLES["u_net"]["rows"]:
        files[f"log_{n}.csv"] = published_log(n, *row[:3])
        files[f"log_hvd_{n}.csv"] = published_log(n, *row[3:])
    return files


def test_the_published_logs_are_one_study_as_they_lie(read):
    rows = {(row.strategy, row.workers): row for row in analyse("U-Net", read(published_logs()).runs).rows}
    for strategy in ("native", "horovod"):
        for n, speedup in column("u_net", f"{strategy}_speedup").items():
            row = rows[strategy, n]
            assert row.speed.steady.value == pytest.approx(speedup, abs=0.005)
            assert row.training_seconds.value == column("u_net", f"{strategy}_seconds")[n]
            assert (row.quality.value, row.metric) == (column("u_net", f"{strategy}_iou")[n], "iou")
    assert rows["horovod", 14].speed.training.value == pytest.approx(7547 / 599)
    assert rows["horovod", 8].source == "log_hvd_8.csv, lines 2-5"


def test_a_log_has_its_epochs_rates_and_losses(read):
    run = read({"log_hvd_8.csv": published_logs()["log_hvd_8.csv"]}).runs[0]
    assert [epoch.learning_rate for epoch in run.epochs] == [0.008] * 4
    assert [epoch.loss for epoch in run.epochs] == pytest.approx([0.4, 0.2, 0.4 / 3, 0.1], abs=1e-6)
    assert all(epoch.validation == {} for epoch in run.epochs)  # the IoU is that of the final model
    assert run.epochs[-1].elapsed_training_seconds == pytest.approx(37.58 / 7.76 * 8)


def test_keras_csv_logger_has_quality_and_losses_and_says_that_times_are_missing():
    imported = gather([str(Path(__file__).parent / "files" / "keras_4.csv")])
    run = imported.runs[0]
    assert (run.result.workers, run.result.strategy, run.result.epochs) == (4, "unnamed", 4)
    assert (run.result.quality, run.result.metric) == (0.8125, "accuracy")
    assert run.epochs[0].validation == {"loss": 0.5607874393463135, "accuracy": 0.8125}
    assert run.result.training_seconds is None
    assert "no speed-up" in imported.readings[0]


def test_a_log_is_of_as_many_workers_as_its_name_its_folder_or_the_user_says(read):
    log = published_logs()["log_8.csv"]
    assert read({"log.csv": log}, workers=8).runs[0].result.workers == 8
    assert read({"16gpus/log.csv": log}).runs[0].result.workers == 16


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (("log_8",), LogName(8)),
        (("log_hvd_8",), LogName(8, "horovod")),
        (("ddp-w4-s1",), LogName(4, "ddp", 1)),
        (("mirrored_2gpus_seed3",), LogName(2, "mirrored", 3)),
        (("16gpus", "log"), LogName(16)),
        (("run-4gpus",), LogName(4)),
        (("np_8", "horovod"), LogName(8, "horovod")),
        (("results", "log"), LogName()),
        (("log_8_2",), LogName()),
        (("seed7",), LogName(None, None, 7)),
        (("gpus0",), LogName()),
    ],
)
def test_count_strategy_and_seed_are_in_a_name_or_not_known(parts: tuple[str, ...], found: LogName):
    assert parse_name(parts) == found
