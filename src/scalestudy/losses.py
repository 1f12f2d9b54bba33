"""The built-in losses for task files: `from scalestudy.losses import dice`, then `loss = dice`."""

from scalestudy.tasks.label_losses import bce, cross_entropy, dice, focal

__all__ = ["bce", "cross_entropy", "dice", "focal"]
