"""Logs of one training, a row an epoch."""

from pathlib import Path

import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.errors import UserError

FILES = Path(__file__).parent / "files"
U_NET = {1: (7535, 1.00, 0.964, 7547, 1.00, 0.965), 8: (1156, 6.73, 0.924, 1006, 7.76, 0.886)}
"""Published (Zenodo 7639190): workers -> native seconds, S of the second epoch, IoU; Horovod's."""


def log(workers: int, seconds: float, speed: float, iou: float, epochs: int = 4) -> str:
    """A log of that study's form: pandas' index, whole time and IoU in every row."""
    rows = [",time_per_epoch,loss,lr,training_time,test_time,iou"]
    for epoch in range(epochs):
        time = 37.58 / speed * (1 if epoch else 5)
        rows.append(
            f"{epoch},{time:.6f},{0.4 / (1 + epoch):.6f},{0.001 * workers:.6f},{seconds:.6f},1.5,{iou:.6f}"
        )
    return "\n".join(rows) + "\n"


def logs() -> dict[str, str]:
    files = {}
    for n, (native, s, iou, horovod, s_horovod, iou_horovod) in U_NET.items():
        files[f"log_{n}.csv"] = log(n, native, s, iou)
        files[f"log_hvd_{n}.csv"] = log(n, horovod, s_horovod, iou_horovod)
    return files


def test_the_published_logs_are_one_study_as_they_lie(read):
    found = read(logs())
    rows = {(row.strategy, row.workers): row for row in analyse("U-Net", found.runs).rows}
    assert set(rows) == {("native", 1), ("native", 8), ("horovod", 1), ("horovod", 8)}
    assert rows["native", 8].speed.steady.value == pytest.approx(6.73, abs=0.005)
    assert rows["horovod", 8].speed.steady.value == pytest.approx(7.76, abs=0.005)
    assert rows["native", 8].training_seconds.value == 1156
    assert (rows["native", 8].quality.value, rows["native", 8].metric) == (0.924, "iou")
    assert rows["horovod", 8].source == "log_hvd_8.csv, lines 2-5"


def test_a_log_has_its_epochs_rates_and_losses(read):
    run = read({"log_hvd_8.csv": logs()["log_hvd_8.csv"]}).runs[0]
    assert run.epochs[0].learning_rate == 0.008
    assert [epoch.loss for epoch in run.epochs] == pytest.approx([0.4, 0.2, 0.4 / 3, 0.1], abs=1e-6)
    assert all(epoch.validation == {} for epoch in run.epochs)  # the IoU is that of the end
    assert run.epochs[-1].elapsed_training_seconds == pytest.approx(37.58 / 7.76 * 8)


def test_keras_csv_logger_has_quality_and_losses_and_says_that_times_are_missing(read):
    found = read({"keras_4.csv": (FILES / "keras_4.csv").read_bytes()})
    run = found.runs[0]
    assert (run.result.workers, run.result.strategy, run.result.epochs) == (4, "unnamed", 4)
    assert (run.result.quality, run.result.metric) == (0.8125, "accuracy")
    assert run.epochs[0].validation == {"loss": 0.5607874393463135, "accuracy": 0.8125}
    assert run.result.training_seconds is None
    assert "No column has times, so there is no speed-up" in found.readings[0]
    assert "--strategy NAME" in found.readings[0]


def test_times_that_grow_are_those_since_the_start(read):
    text = "epoch,elapsed,loss\n0,10,1\n1,15,.9\n2,21,.8\n"
    assert read({"log_2.csv": text}).runs[0].result.training_seconds == 21
    assert (
        read({"log_2.csv": text.replace("elapsed", "time_per_epoch")}).runs[0].result.training_seconds == 46
    )


def test_a_log_whose_name_says_no_count_asks_for_it(read):
    with pytest.raises(UserError, match="--workers N"):
        read({"log.csv": logs()["log_8.csv"]})
    assert read({"log.csv": logs()["log_8.csv"]}, workers=8).runs[0].result.workers == 8
    assert read({"16gpus/log.csv": logs()["log_8.csv"]}).runs[0].result.workers == 16


def test_a_log_that_broke_off_or_was_begun_anew_keeps_what_can_be_read(read):
    whole = logs()["log_8.csv"]
    found = read({"log_8.csv": whole + whole.splitlines()[0] + "\n4,x,0.1,0.008,1156,1.5,0.9\n5,4.8,0.0"})
    assert found.runs[0].result.epochs == 4
    assert "line 7: epoch_seconds x is no number" in found.readings[1]
    assert "line 8: 3 cells" in found.readings[1]
    with pytest.raises(UserError, match="a log with an epoch"):
        read({"log_8.csv": whole.splitlines()[0] + "\n"})
