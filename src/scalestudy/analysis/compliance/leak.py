"""Signs that validation samples were trained on: losses of both that are one. A sign, not a proof."""

from math import isfinite

from scalestudy.analysis.compliance.base import Finding, where
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Run

FEWEST = 5
"""Epochs below which curves tell nothing."""
NEAR = 0.03
"""Share by which the losses may differ in every epoch and still be one."""
FALLEN = 0.2
"""Share of its first value that the training loss has come down to: what a model knows by heart."""


def leak(findings: Findings) -> list[Finding]:
    """Foreign runs whose validation loss is that of training to the end, or better from the start."""
    signs: dict[str, list[Run]] = {}
    for run in findings.runs:
        if run.foreign and (sign := _sign(run)):
            signs.setdefault(sign, []).append(run)
    return [
        Finding(
            "doubtful",
            "A sign of a leak",
            where(runs),
            f"{sign}. So it is where validation images were trained on, as when a set is shuffled anew in"
            " every epoch before it is split; strong regularisation can do the same. It is a sign, not a"
            " proof: hold the two lists of files against each other.",
            "quality as stated",
            "unknown until measured on images of their own",
        )
        for sign, runs in signs.items()
    ]


def _sign(run: Run) -> str | None:
    pairs = [
        (epoch.loss, epoch.validation["loss"])
        for epoch in run.epochs
        if epoch.loss is not None and "loss" in epoch.validation
    ]
    sound = len(pairs) >= FEWEST and all(isfinite(a) and isfinite(b) and a > 0 for a, b in pairs)
    if not sound or pairs[-1][0] > FALLEN * pairs[0][0]:
        return None
    later = pairs[2:]  # the loss of an early epoch is a mean over a model that changes fast
    if all(abs(b - a) <= NEAR * a for a, b in later):
        return f"The validation loss follows the training loss within {100 * NEAR:.0f} % to the end"
    if all(b < a for a, b in pairs) and later[-1][1] < (1 - NEAR) * later[-1][0]:
        return "The validation loss is below the training loss from the first epoch to the last"
    return None
