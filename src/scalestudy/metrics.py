"""The built-in metrics for task files: `from scalestudy.metrics import Dice`."""

from scalestudy.tasks.histograms import Auroc, AveragePrecision, Ece
from scalestudy.tasks.label_metrics import (
    F1,
    Accuracy,
    BalancedAccuracy,
    Brier,
    ConfusionMatrix,
    Dice,
    IoU,
    Precision,
    Recall,
    TopK,
)

__all__ = [
    "F1",
    "Accuracy",
    "Auroc",
    "AveragePrecision",
    "BalancedAccuracy",
    "Brier",
    "ConfusionMatrix",
    "Dice",
    "Ece",
    "IoU",
    "Precision",
    "Recall",
    "TopK",
]
