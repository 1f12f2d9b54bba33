"""The metrics that have a name, for task files: `from scalestudy.metrics import Dice`."""

from scalestudy.tasks.boundary import BoundaryF1
from scalestudy.tasks.confusion import ConfusionMatrix
from scalestudy.tasks.histograms import Auroc, AveragePrecision, Ece
from scalestudy.tasks.hits import Accuracy, Brier, TopK
from scalestudy.tasks.iou import IoU
from scalestudy.tasks.objects import ObjectAP
from scalestudy.tasks.overlap import F1, BalancedAccuracy, Dice, Precision, Recall

__all__ = [
    "F1",
    "Accuracy",
    "Auroc",
    "AveragePrecision",
    "BalancedAccuracy",
    "BoundaryF1",
    "Brier",
    "ConfusionMatrix",
    "Dice",
    "Ece",
    "IoU",
    "ObjectAP",
    "Precision",
    "Recall",
    "TopK",
]
