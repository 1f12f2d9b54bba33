"""Larger runs of synthetic studies, predicted from one worker."""

import synthetic
from scalestudy.analysis.runs import Run
from scalestudy.config.catalog import task_defaults
from scalestudy.config.point import Point
from scalestudy.config.settings import TrainSettings
from scalestudy.features.advise.larger_runs import LargerRuns, larger_runs
from scalestudy.features.advise.network import KnownNetwork, StatedLink

FAST = KnownNetwork(across=StatedLink(12.5e9, 2e-6), within=StatedLink(50e9, 3e-6), per_node=2)


def on_gpu(run: Run) -> Run:
    """The same run, on a GPU."""
    ranks = tuple(rank.model_copy(update={"devices": ["/device:GPU:0"]}) for rank in run.ranks)
    return synthetic.Run(run.result, run.epochs, run.folder, ranks)


def evenly(run: Run) -> Run:
    """The same run with equal epoch times."""
    spent = {"train_seconds": run.result.training_seconds / len(run.epochs), "input_seconds": 0.0}
    epochs = tuple(epoch.model_copy(update=spent) for epoch in run.epochs)
    return synthetic.Run(run.result, epochs, run.folder, run.ranks)


def point(strategy: str, workers: int = 2, **train: object) -> Point:
    """A point as a study resolves it."""
    does = "multiworker" if strategy == "native" else strategy
    settings = TrainSettings.model_validate({"epochs": 8, "batch_size": 16, **train})
    return Point.model_validate(
        {
            "name": f"{strategy}-w{workers}-s0",
            "study": "made",
            "task": "unet",
            "strategy": strategy,
            "workers": workers,
            "seed": 0,
            "data": {"source": "indents"},
            "train": task_defaults("unet").complete_train(settings),
            "terms": {"implementation": does},
        }
    )


def unet(most: int = 14, network: KnownNetwork = FAST) -> list[LargerRuns]:
    """The published U-Net study, predicted from its one-worker runs; 8 epochs of equal time."""
    # Runs of several workers only define which worker counts were measured.
    runs = [on_gpu(evenly(run)) for run in synthetic.published()]
    return larger_runs([point("native"), point("horovod")], runs, network, most=most)[0]
