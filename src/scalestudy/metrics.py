"""The built-in metrics for task files: `from scalestudy.metrics import Dice`."""

from scalestudy.tasks.label_metrics import (
    F1,
    Accuracy,
    Dice,
    IoU,
    Precision,
    Recall,
    TopK,
)

__all__ = ["F1", "Accuracy", "Dice", "IoU", "Precision", "Recall", "TopK"]
