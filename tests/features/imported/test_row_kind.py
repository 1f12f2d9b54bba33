"""Rows that are runs, rows that are the epochs of a run, and rows of which nothing says which they are."""

import pytest

from published import column
from scalestudy.analysis.findings import analyse
from scalestudy.report.loss_curves import losses
from scalestudy.util.errors import UserError


def test_a_table_whose_column_of_workers_is_not_recognised_says_how_to_name_it(read):
    table = {"t.csv": "strategy,n,seconds\nddp,1,100\nddp,2,52\n"}
    with pytest.raises(UserError) as caught:
        read(table)
    assert "--column workers=NAME" in caught.value.action
    assert [
        run.result.workers for run in read(table, columns={"workers": "n"}).runs
    ] == [1, 2]


KERAS = "epoch,accuracy,loss,val_accuracy,val_loss\n0,.5,1.2,.55,1.1\n1,.7,.8,.72,.78\n2,.8,.6,.78,.65\n"


def test_the_published_logs_are_one_study_as_they_lie(read, published_logs):
    imported = read(published_logs, strategy="native")
    rows = {
        (row.strategy, row.workers): row for row in analyse("U-Net", imported.runs).rows
    }
    assert len(rows) == len(imported.runs) == 16
    for strategy in ("native", "horovod"):
        for n, speedup in column("u_net", f"{strategy}_speedup").items():
            row = rows[strategy, n]
            assert row.speed.steady.value == pytest.approx(speedup, abs=0.005)
            assert (
                row.training_seconds.value == column("u_net", f"{strategy}_seconds")[n]
            )
            assert (row.quality.value, row.metric) == (
                column("u_net", f"{strategy}_iou")[n],
                "iou",
            )
    assert rows["horovod", 14].speed.training.value == pytest.approx(7547 / 599)
    assert rows["horovod", 8].source == "log_hvd_8.csv, lines 2-7"


def test_a_log_has_its_epochs_rates_and_losses(read, published_logs):
    run = read({"log_hvd_8.csv": published_logs["log_hvd_8.csv"]}).runs[0]
    assert [epoch.learning_rate for epoch in run.epochs] == [0.008] * 6
    assert [epoch.loss for epoch in run.epochs][:3] == pytest.approx(
        [0.4, 0.2, 0.4 / 3], abs=1e-6
    )
    assert all(
        epoch.validation == {} for epoch in run.epochs
    )  # the IoU is that of the final model
    assert run.epochs[-1].elapsed_training_seconds == pytest.approx(37.58 / 7.76 * 10)


@pytest.mark.parametrize("index", ["", "Unnamed: 0", "step", "Nr."])
def test_rows_beside_a_constant_time_of_the_run_are_epochs_whatever_their_index_is_called(
    read, published_logs, index: str
):
    header, body = published_logs["log_14.csv"].split("\n", 1)
    imported = read(
        {"one.csv": f"{index}{header}\n{body}"}, workers=14, strategy="native"
    )
    assert [(run.result.workers, run.result.epochs) for run in imported.runs] == [
        (14, 6)
    ]
    assert imported.runs[0].result.quality == 0.486


def test_logs_that_lie_under_each_other_in_one_table_are_runs(read):
    rows = [
        f"{workers},{cluster},{epoch},{time * (3 if epoch == 0 else 1) + epoch / 100},{100 * time},.9"
        for cluster in ("A", "B")
        for workers, time in ((1, 8), (2, 5))
        for epoch in range(5)
    ]
    imported = read(
        {"t.csv": "gpus,cluster,it,epoch_time,training_time,iou\n" + "\n".join(rows)}
    )
    assert [
        (run.result.workers, run.result.swept, run.result.epochs)
        for run in imported.runs
    ] == [
        (workers, {"cluster": cluster}, 5)
        for cluster in ("A", "B")
        for workers in (1, 2)
    ]
    assert imported.runs[0].epoch_seconds == pytest.approx(8.025)


def test_keras_csv_logger_has_quality_and_curves_and_says_that_times_are_missing(read):
    imported = read({"keras_4.csv": KERAS})
    run = imported.runs[0]
    assert (run.result.workers, run.result.strategy, run.result.epochs) == (
        4,
        "unnamed",
        3,
    )
    assert (run.result.quality, run.result.metric, run.result.training_seconds) == (
        0.78,
        "accuracy",
        None,
    )
    assert run.epochs[0].validation == {"loss": 1.1, "accuracy": 0.55}
    assert (
        "there is no speed-up" in imported.readings[0]
        and "Not used: accuracy." in imported.readings[0]
    )
    assert [figure.choice for figure in losses(analyse("keras", imported.runs))] == [
        "against epochs"
    ]


@pytest.mark.parametrize(
    ("text", "epoch", "training"),
    [
        ("epoch,loss,time\n0,1,40\n1,.9,8\n2,.8,8.2\n", 8.1, 56.2),
        ("epoch,loss,time\n0,1,10\n1,.9,18\n2,.8,26\n", 8, 26),
        ("epoch,loss,time\n0,1,26\n1,.9,26\n2,.8,26\n", None, 26),
    ],
)
def test_times_of_a_log_are_of_each_epoch_since_the_start_or_of_the_run(
    read, text, epoch, training
):
    run = read({"log_2.csv": text}).runs[0]
    assert run.epoch_seconds == (None if epoch is None else pytest.approx(epoch))
    assert run.result.training_seconds == pytest.approx(training)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("t_4.csv", ",time_per_epoch,iou\n0,10,.5\n1,8,.6\n2,8,.7\n"),
        ("t_4.csv", ",loss,training_time,iou\n0,10,7,.5\n1,8,9,.6\n2,8,8,.7\n"),
        (
            "t.csv",
            "gpus,epoch_time,loss\n" + "".join(f"1,{8 + k},{k}\n" for k in range(20)),
        ),
        ("t.csv", "gpus,epoch_time,accuracy\n1,8,.9\n1,8.1,.9\n2,5,.91\n2,5.1,.91\n"),
    ],
)
def test_rows_that_may_be_runs_or_epochs_are_refused_until_the_user_says(
    read, file: str, text: str
):
    with pytest.raises(UserError, match="--row run, or --row epoch"):
        read({file: text})
    runs = read({file: text}, row="run", workers=None if "gpus" in text else 4).runs
    assert len(runs) == text.count("\n") - 1
    assert len(read({file: text}, row="epoch").runs) < len(runs)


@pytest.mark.parametrize(
    "text",
    [
        "gpus,epoch_time,accuracy\n1,8,.9\n1,8.1,.91\n2,5,.91\n2,5.1,.91\n",
        "gpus,seed,epoch_time,accuracy\n1,0,8,.9\n1,1,8.1,.9\n2,0,5,.9\n2,1,5.1,.9\n",
        "gpus,training_time,accuracy\n1,80,.9\n1,81,.9\n2,50,.9\n2,51,.9\n",
        "gpus,epoch,time\n1,15,80\n1,15,82\n2,15,50\n4,15,30\n",
    ],
)
def test_repeats_of_a_table_are_runs(read, text: str):
    imported = read({"t.csv": text})
    assert len(imported.runs) == 4
    assert imported.runs[0].result.epochs == (15 if "epoch," in text else None)


def test_a_log_is_of_as_many_workers_as_its_name_its_folder_or_the_user_says(
    read, published_logs
):
    log = published_logs["log_8.csv"]
    assert read({"log.csv": log}, workers=8).runs[0].result.workers == 8
    assert read({"16gpus/log.csv": log}).runs[0].result.workers == 16
    with pytest.raises(UserError, match="--workers 4, and 8 in the name"):
        read({"log_8.csv": log}, workers=4)
