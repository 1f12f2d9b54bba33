"""Estimates of made studies, for the tests of analysis and of the report."""

from collections.abc import Sequence

import made
from scalestudy.analysis.runs import Run
from scalestudy.features.estimate.network import KnownNetwork, Stated
from scalestudy.features.estimate.prediction import Question, predict
from scalestudy.features.estimate.records import EstimateRecord
from scalestudy.study.catalog import resolved_train
from scalestudy.study.point import Point
from scalestudy.study.settings import TrainSettings

FAST = KnownNetwork(across=Stated(12.5e9, 2e-6, "100 Gb/s"), within=Stated(50e9, 3e-6, "NVLink"), per_node=2)


def on_gpu(run: Run) -> Run:
    """The same run, on a GPU."""
    ranks = tuple(rank.model_copy(update={"devices": ["/device:GPU:0"]}) for rank in run.ranks)
    return made.Run(run.result, run.epochs, run.folder, ranks)


def evenly(run: Run) -> Run:
    """The same run, whose epochs took the same time."""
    spent = {"train_seconds": run.result.training_seconds / len(run.epochs), "input_seconds": 0.0}
    epochs = tuple(epoch.model_copy(update=spent) for epoch in run.epochs)
    return made.Run(run.result, epochs, run.folder, run.ranks)


def point(strategy: str, workers: int = 2, **train: object) -> Point:
    """What a study asks for."""
    does = "multiworker" if strategy == "native" else strategy
    settings = TrainSettings.model_validate({"epochs": 8, "batch_size": 16, **train})
    return Point.model_validate({
        "name": f"{strategy}-w{workers}-s0", "study": "made", "task": "unet", "strategy": strategy,
        "workers": workers, "seed": 0, "data": {"source": "indents"},
        "train": resolved_train("unet", settings), "terms": {"implementation": does},
    })  # fmt: skip


def unet(counts: Sequence[int] = (1, 2, 4, 6, 8, 10, 12, 14), network: KnownNetwork = FAST) -> EstimateRecord:
    """The published U-Net study, estimated from its runs of one worker; 8 epochs that took the same time."""
    ones = [on_gpu(evenly(run)) for run in made.published() if run.result.workers == 1]
    points = [point("native"), point("horovod")]
    return predict("unet", points, ones, network, Question(counts=tuple(counts)), before=True)
