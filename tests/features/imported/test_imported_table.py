"""Imported tables: the meaning of their columns, and their rows."""

import json
from pathlib import Path

import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.features.imported.gather import gather_runs
from scalestudy.report.formats import to_json
from scalestudy.util.errors import UserError

ROWS = [
    {
        "strategy": "ddp",
        "gpus": 1,
        "seed": 3,
        "seconds": 570.0,
        "val_accuracy": 0.91,
        "global_batch": 32,
    },
    {
        "strategy": "ddp",
        "gpus": 4,
        "seed": 3,
        "seconds": 180.0,
        "val_accuracy": 0.9,
        "global_batch": 128,
    },
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
    results = [
        run.result for run in gather_runs([str(write(tmp_path / f"t.{ending}"))]).runs
    ]
    assert [
        (
            r.strategy,
            r.workers,
            r.seed,
            r.training_seconds,
            r.metric,
            r.quality,
            r.per_worker_batch,
        )
        for r in results
    ] == [
        ("ddp", 1, 3, 570.0, "accuracy", 0.91, 32),
        ("ddp", 4, 3, 180.0, "accuracy", 0.9, 32),
    ]
    assert len({result.name for result in results}) == 2


@pytest.mark.filterwarnings("error")
def test_times_and_qualities_at_the_limits_are_reported_without_an_error(read):
    rows = "1,0,1e14,1e14\n1,1,2e-9,-1e15\n2,0,2e-9,1e-300\n2,1,1e308,1\n2,2,1e-308,1\n4,0,1e14,0\n"
    imported = read({"t.csv": "workers,seed,training_seconds,quality\n" + rows})
    assert len(imported.runs) == 4
    assert json.loads(to_json(analyse("t", imported.runs)))["rows"]


WEAK = """workers,seed,training_seconds,accuracy,samples_processed
1,0,3600,.9,1000000
1,1,3610,.9,1000000
2,0,3700,.9,2000000
2,1,3712,.9,2000000
8,0,3990,.9,8000000
8,1,4001,.9,8000000
"""


def test_samples_processed_tell_that_each_worker_did_the_whole_work(read):
    """Times that do not fall are those of weak scaling, which is compared by the time of a sample."""
    imported = read({"weak.csv": WEAK})
    assert any(
        "Throughput is samples_processed by training_seconds" in text
        for text in imported.readings
    )
    findings = analyse("weak", imported.runs)
    decision = findings.advice.decision
    assert (decision.choice.workers, decision.doubts) == (8, ())
    assert decision.prices[decision.choice].basis == "rate"
    assert findings.rows[-1].efficiency.value == pytest.approx(3605 / 3995.5, rel=1e-3)
    (unlike,) = [text for text in findings.advice.sentences if "weak scaling" in text]
    assert "1,000,000 to 8,000,000 samples" in unlike


def test_samples_beside_a_throughput_and_in_logs_change_no_rate(read):
    stated = read(
        {"t.csv": "workers,seconds,img/s,images_processed\n1,10,7,100\n2,5,14,100\n"}
    )
    assert [run.result.throughput for run in stated.runs] == [7.0, 14.0]
    assert [run.result.samples_processed for run in stated.runs] == [100, 100]
    log = read(
        {"log_2.csv": "epoch,time,samples_seen,val_accuracy\n1,5,100,.8\n2,5,200,.9\n"}
    )
    assert [
        (run.result.throughput, run.result.samples_processed) for run in log.runs
    ] == [(None, None)]


def test_runs_of_a_csv_file_name_their_line_and_columns_without_a_name_are_not_used(
    read,
):
    imported = read({"t.csv": "# by hand\ngpus,seconds,,\n1,9,,\n\n4,3,,\n"})
    assert [run.result.workers for run in imported.runs] == [1, 4]
    assert [str(run.source) for run in imported.runs] == [
        "t.csv, line 3",
        "t.csv, line 5",
    ]


@pytest.mark.parametrize(
    ("header", "cell", "seconds"),
    [
        ("Elapsed", "1:02:03", 3723),
        ("Elapsed", "2-01:02:03", 2 * 86400 + 3723),
        ("Time (hh:mm:ss)", "00:10:00", 600),
        ("Time (min)", "00:10:00", 600),
        ("time", '"1,234.5"', 1234.5),
        ("time", '"1,234,567"', 1234567),
    ],
)
def test_times_are_read_as_queues_and_spreadsheets_write_them(
    read, header: str, cell: str, seconds: float
):
    (run,) = read({"t.csv": f"gpus,{header}\n1,{cell}\n"}).runs
    assert run.result.training_seconds == seconds


@pytest.mark.parametrize("cell", ["12:30", "1:62:03", '"1,234"', '"12,34.5"'])
def test_a_time_that_may_mean_two_is_not_read(read, cell: str):
    with pytest.raises(UserError):
        read({"t.csv": f"gpus,time\n1,{cell}\n"})


def test_rows_that_cannot_be_read_are_left_out_and_named(read):
    text = "gpus,seconds\n1,100\n2\nfour,9\n2.5,9\n8,nan\n16,-3\n32,inf\n2,1e308\n2,1e-308\n2,66 176\n4,30\n"
    imported = read({"t.csv": text})
    assert [run.result.workers for run in imported.runs] == [1, 4]
    (skipped,) = [
        said for said in imported.readings if said.startswith("t.csv: left out")
    ]
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
        ({"t.csv": "gpus,epoch,epoch_time\n1,1,3\n1,2,3\n1,1,3\n"}, "a column `seed`"),
        ({"t.csv": "gpus,seconds\n"}, "Name another file."),
        ({"t.csv": "gpus,seconds\nx,1\n"}, "Correct its rows."),
        ({"t.json": "[{"}, "Correct the file."),
        ({"t.json": "[1]"}, "or as CSV."),
        ({"log.csv": "epoch,loss\n0,1\n"}, "--workers N"),
        (
            {"t.csv": "nodes,gpus_per_node,seconds\n1,4,9\n2,4,5\n"},
            "--column workers=nodes",
        ),
        ({"t.csv": "gpus,seconds\n1,-\n2,n/a\n"}, "Correct its rows."),
        ({"t.csv": "gpus,seconds\n1,2\n".encode("utf-16")}, "Save it as UTF-8."),
    ],
)
def test_a_file_that_is_broken_or_leaves_a_question_is_refused_with_the_way_out(
    read, files, action
):
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
    imported = read(
        {"t.csv": "gpus,train.xla,nodes,seconds\n1,true,1,10\n1,false,1,12\n"}
    )
    assert [run.result.swept for run in imported.runs] == [
        {"train.xla": True},
        {"train.xla": False},
    ]
    assert "Not used: nodes." in imported.readings[0]


@pytest.mark.parametrize("name", ["batch_size", "per_worker_batch", "global_batch"])
def test_rows_with_other_batches_are_other_rows_unless_they_grow_with_the_workers(
    read, name: str
):
    rows = "".join(
        f"{workers},{batch},{seed},9\n"
        for workers in (1, 2)
        for batch in (32, 64)
        for seed in (0, 1)
    )
    imported = read({"t.csv": f"gpus,{name},seed,seconds\n{rows}"})
    assert [run.result.swept[name] for run in imported.runs] == [32, 32, 64, 64] * 2
    assert [row.runs for row in analyse("t", imported.runs).rows] == [2, 2, 2, 2]
    growing = read({"t.csv": "gpus,global_batch,seconds\n1,32,9\n2,64,5\n"})
    assert [run.result.swept for run in growing.runs] == [{}, {}]
