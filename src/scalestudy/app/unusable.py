"""Settings of a point that cannot work with its task and data: refused before anything is started."""

import os
from collections.abc import Iterable
from pathlib import Path

from scalestudy.config.file import Study
from scalestudy.config.formula import called
from scalestudy.config.objectives import (
    METRICS,
    loss_terms,
    metric_key,
    metric_term,
    refuse_unfit,
    refuse_unweighted,
)
from scalestudy.config.point import Point
from scalestudy.data.sources.locate import cache_folder
from scalestudy.util.errors import UserError


def refuse_unusable(point: Point, study: Study, base: Path, *, classes: int | None = None) -> None:
    """Refuse settings that cannot work.

    Args:
        point: The point.
        study: Its study.
        base: Folder that paths are relative to.
        classes: Number of classes of its data; None if they are not prepared.

    Raises:
        UserError: Names the key, its line, and a remedy.
    """
    train, place = point.train, study.place
    if train.metrics:
        refuse_unfit(map(metric_term, train.metrics), classes, place.of("train.metrics"))
    weights = train.class_weights
    if train.loss and weights:
        refuse_unweighted(loss_terms(train.loss), place.of("train.loss"))
    if isinstance(weights, tuple) and (not any(weights) or (classes and len(weights) != classes)):
        raise UserError(
            f"{classes} class weights, some above 0, one for each class" if classes else "weights above 0",
            f"{list(weights)}{place.of('train.class_weights')}",
            'Correct class_weights under [train], or write "balanced".',
        )
    metrics, wanted = _metric_names(train.metrics or study.brought.metrics), train.keep_best
    # A metric may have further values, such as one for each class: iou_background.
    beside = any(wanted.startswith(f"{metric}_") for metric in metrics)
    if metrics and not beside and wanted not in (*metrics, "quality", "loss", "none"):
        raise UserError(
            f"keep_best to name a metric ({', '.join(metrics)}), quality, loss or none",
            f"{wanted!r}{place.of('train.keep_best')}",
            "Correct keep_best under [train].",
        )
    if train.weights not in (None, "none", "imagenet") and not Path(train.weights).is_file():
        raise UserError(
            'a file of weights, "imagenet" or "none" as weights',
            f"{train.weights}, which is no file{place.of('train.weights')}",
            "Correct the path. It is relative to the study file.",
        )
    cache = cache_folder(point.data.cache, base).absolute()
    there = next(path for path in (cache, *cache.parents) if path.exists())
    on_disk = there.is_dir() and os.statvfs(there).f_blocks > 0  # /proc has no blocks
    if not on_disk or not os.access(there, os.W_OK | os.X_OK):
        why = "not writable" if on_disk else "no folder on a disk"
        raise UserError(
            "a writable folder for prepared data as data.cache",
            f"{cache}: {there} is {why}{place.of('data.cache')}",
            'Name another folder under [data]: cache = "PATH".',
        )


def _metric_names(texts: Iterable[str]) -> list[str]:
    return [metric_key(metric_term(text)) if called(text) in METRICS else text for text in texts]
