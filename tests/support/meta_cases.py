"""Runs on PyTorch's meta device, by name: what `torch_on_meta.py` computes, and a test expects.

Like a GPU, the meta device holds tensors that NumPy cannot read; unlike one, it is in every PyTorch.
"""

from itertools import cycle
from typing import Any, NamedTuple

from scalestudy.config.objectives import LOSSES, METRICS, WEIGHTED
from scalestudy.config.operations import KINDS

DATA = {
    "masks 2": 2,
    "masks 2 ignored": 2,
    "masks 4 ignored": 4,
    "classes 2": 2,
    "classes 7": 7,
}
"""Number of classes by the name of a set; in "ignored" ones, pixels do not count."""
PRECISIONS = ("float32", "tf32", "float64", "mixed_bfloat16", "mixed_float16")
STRATEGIES = (("torch-single", 1), ("torch-virtual", 2), ("ddp", 1))
"""With the number of workers; two do not divide the batch."""
FORMULA = "0.5*bce + dice"
MODELS = ("module", "keras")
AUGMENTED = ", ".join(KINDS)


class Case(NamedTuple):
    """A run: its data, "module" or "keras", its strategy and number of workers, and settings of [train]."""

    data: str
    model: str
    strategy: tuple[str, int]
    weighted: bool
    train: dict[str, Any]


def metrics_of(classes: int) -> list[str]:
    """Every metric by name, for so many classes."""
    names = list(METRICS)
    names[names.index("top_k")] = f"top_k(k={classes - 1})"
    return names


def losses_of(data: str) -> list[str]:
    """Every loss by name that fits the data, and a formula."""
    if data.startswith("masks"):
        return [*LOSSES, "focal(gamma=1.5)", FORMULA]
    names = list(LOSSES)
    names.remove("dice")
    return [*names, "bce + 2*focal"]


def cases() -> dict[str, Case]:
    """Return all cases by name; strategies and precisions alternate, so that each pair of them occurs."""
    found: dict[str, Case] = {}
    strategies, precisions = cycle(STRATEGIES), cycle(PRECISIONS)

    def add(
        label: str, data: str, model: str, strategy: tuple[str, int], **train: Any
    ) -> None:
        weighted = str(train["loss"]).split("(")[0] in WEIGHTED
        name, count = strategy
        what = " ".join([model, data, label, name, str(count), train["precision"]])
        settings = {
            "metrics": metrics_of(DATA[data])[:1],
            "batch_norm": "fresh",
        } | train
        found[what] = Case(data, model, strategy, weighted, settings)

    models = cycle(MODELS)
    for data, classes in DATA.items():
        next(models)  # so that each loss is computed with both
        for loss in losses_of(data):
            add(
                loss,
                data,
                next(models),
                next(strategies),
                loss=loss,
                precision=next(precisions),
            )
        for model in MODELS:
            every = {"loss": "cross_entropy", "metrics": metrics_of(classes)}
            add(
                "every metric",
                data,
                model,
                next(strategies),
                precision=next(precisions),
                **every,
            )
    single = STRATEGIES[0]
    settings: dict[str, dict[str, Any]] = {
        "augmented": {"augment": AUGMENTED},
        "synchronised": {"sync_batch_norm": True},
        "moving statistics": {"batch_norm": "moving"},
        "clipped": {"clip_norm": 1.0},
        "accumulated": {"accumulate": 2},
        "by adamw": {"optimizer": "adamw"},
        "frozen first": {"frozen_epochs": 1},
    }
    for label, train in settings.items():
        for model in MODELS:
            strategy = STRATEGIES[1] if label == "synchronised" else single
            add(
                label,
                "masks 4 ignored",
                model,
                strategy,
                loss=FORMULA,
                precision="float32",
                **train,
            )
    return found
