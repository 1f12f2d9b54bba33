"""The built-in metrics for task files: `from scalestudy.metrics import Dice`."""

from scalestudy.tasks.histograms import Auroc, AveragePrecision, Ece
from scalestudy.tasks.image_metrics import BoundaryF1, ObjectAP
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
    "F1", "Accuracy", "Auroc", "AveragePrecision", "BalancedAccuracy", "BoundaryF1", "Brier",
    "ConfusionMatrix", "Dice", "Ece", "IoU", "ObjectAP", "Precision", "Recall", "TopK",
]  # fmt: skip
