"""The metrics that have a name, made for given data."""

from collections.abc import Callable

import keras

from scalestudy.study.formula import Term
from scalestudy.study.objectives import metric_key, refuse_of_masks
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.boundary import BoundaryF1
from scalestudy.tasks.confusion import ConfusionMatrix
from scalestudy.tasks.histograms import Auroc, AveragePrecision, Ece
from scalestudy.tasks.hits import Accuracy, Brier, TopK
from scalestudy.tasks.iou import IoU
from scalestudy.tasks.objects import ObjectAP
from scalestudy.tasks.overlap import F1, BalancedAccuracy, Dice, Precision, Recall

NAMED: dict[str, Callable[..., keras.Metric]] = {
    "iou": IoU, "dice": Dice, "boundary_f1": BoundaryF1, "object_ap": ObjectAP, "accuracy": Accuracy,
    "top_k": TopK, "balanced_accuracy": BalancedAccuracy, "precision": Precision, "recall": Recall, "f1": F1,
    "auroc": Auroc, "average_precision": AveragePrecision, "ece": Ece, "brier": Brier,
    "confusion_matrix": ConfusionMatrix,
}  # fmt: skip


def named_metric(term: Term, data: DataInfo) -> keras.Metric:
    """The metric of that name, for such data.

    Raises:
        UserError: If it is one of masks, and the data has none.
    """
    refuse_of_masks([term], data.kind)
    return NAMED[term.name](data.classes, data.ignore, name=metric_key(term), **term.parameters)
