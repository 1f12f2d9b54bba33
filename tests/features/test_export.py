"""Runs for TensorBoard and MLflow, read back by their own libraries."""

import sys
from datetime import datetime

import pytest

import synthetic
from scalestudy.features.export import export_runs, exported
from scalestudy.util.errors import UserError

RUN = synthetic.run("horovod", 2, swept={"train.batch_size": 8}, epochs=3, quality=0.9)


def test_a_run_has_its_settings_its_values_by_epoch_and_their_times():
    run = exported(RUN)
    assert (
        run.settings["strategy"] == "horovod" and run.settings["train.batch_size"] == 8
    )
    assert [epoch for epoch, *_ in run.epochs] == [1, 2, 3]
    assert {"loss", "learning_rate", "validation/loss", "validation/iou"} == set(
        run.epochs[0][2]
    )
    assert run.summary["run/quality"] == 0.9
    assert run.end == datetime.fromisoformat(RUN.result.finished).timestamp()
    times = [at for *_, at in run.values()]
    assert run.start < times[0] and times == sorted(times)


@pytest.mark.parametrize("dashboard", ["tensorboard", "mlflow"])
def test_a_library_that_is_missing_is_named_with_how_to_install_it(
    dashboard, tmp_path, monkeypatch
):
    for name in [name for name in sys.modules if name.partition(".")[0] == dashboard]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, dashboard, None)
    with pytest.raises(UserError, match=f"scalestudy\\[{dashboard}\\]"):
        export_runs([RUN], "made", dashboard, str(tmp_path))


def test_tensorboard_reads_scalars_and_settings(tmp_path):
    pytest.importorskip("tensorboard")
    count, command = export_runs([RUN], "made", "tensorboard", str(tmp_path))
    assert count == 1 and command == f"tensorboard --logdir {tmp_path}"
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    read = EventAccumulator(str(tmp_path / RUN.result.name)).Reload()
    assert [event.step for event in read.Tensors("loss")] == [1, 2, 3]
    assert make_ndarray(read.Tensors("loss")[0].tensor_proto) == pytest.approx(
        RUN.epochs[0].loss
    )
    assert {"validation/iou", "run/quality", "run/throughput"} <= set(
        read.Tags()["tensors"]
    )
    assert read.PluginTagToContent("hparams")
    assert export_runs([RUN], "made", "tensorboard", str(tmp_path))[0] == 0


def test_mlflow_reads_parameters_and_metrics(tmp_path):
    pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    from mlflow.tracking import MlflowClient

    count, command = export_runs([RUN], "made", "mlflow", str(tmp_path))
    assert count == 1 and "mlflow.db" in command
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    (read,) = client.search_runs([client.get_experiment_by_name("made").experiment_id])
    assert read.info.run_name == RUN.result.name and read.info.status == "FINISHED"
    assert (
        read.data.params["workers"] == "2"
        and read.data.params["train.batch_size"] == "8"
    )
    history = client.get_metric_history(read.info.run_id, "loss")
    assert [value.step for value in history] == [1, 2, 3]
    assert history[0].value == pytest.approx(RUN.epochs[0].loss)
    assert export_runs([RUN], "made", "mlflow", str(tmp_path))[0] == 0
