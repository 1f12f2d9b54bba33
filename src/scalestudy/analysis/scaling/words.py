"""What a scaling model says, in sentences."""

from scalestudy.analysis.scaling.model import Model
from scalestudy.analysis.scaling.series import TIMES

NAMES = {
    "fixed": "a part that does not shrink with the workers",
    "constant": "exchange that does not grow",
    "ring": "exchange by rings",
    "log": "exchange or waiting that grows with log₂ n",
    "linear": "exchange with each worker in turn",
    "second node": "exchange between nodes",
}
"""What terms stand for, beside compute."""


def model_sentences(model: Model) -> list[str]:
    """What the model says of going further: its limit, its lack of fit, and what it leaves out."""
    if model.fit is None:
        return []
    sentences, limit = [], model.limit
    if limit.value is not None:
        relative = f" (relative to {model.reference} workers)" if model.reference > 1 else ""
        sentences.append(
            f"If its times go on as measured, speed-up{relative} stays below {limit.value:.3g}"
            f" (95 % interval {limit.low:.3g} to {limit.high:.3g}) on any number of workers."
        )
    if model.lack_of_fit:
        count, off = model.fit.worst
        sentences.append(
            f"Its scaling model misses something: it is {100 * abs(off):.2g} % off at {_workers(count)}, so"
            " its predictions of other counts are unsure."
        )
    if model.series.others:
        others = ", ".join(str(count) for count in model.series.others)
        sentences.append(
            f"Left out of its scaling model, since they process other numbers of samples: {others} workers."
        )
    return sentences


def fit_words(model: Model, name: str) -> str:
    """The model, what it consists of, and how well it holds. `name` is the series'."""
    fit, series = model.fit, model.series
    assert fit is not None
    of = "" if series.of == "training" else f" ({TIMES[series.of].lower()})"
    parts = [NAMES[part] for part in fit.parts if part in NAMES]
    consists = f"with {' and '.join(parts)}" if parts else "work that is shared out and nothing else"
    count, off = fit.worst
    held = f"The mean times are off by {100 * abs(off):.2g} % at most (at {_workers(count)})."
    text = f"{name}: {fit.written}{of}, {consists}. "
    text += "The mean times lie on it." if abs(off) < 1e-6 else held
    extra = fit.parts.get("second node")
    if extra and series.updates and model.workers_per_node is not None:
        # The coefficient is of all updates of a training on one worker.
        per_update = extra / series.updates / (series.key.workers if series.update == "growing" else 1)
        text += (
            f" From the second node on ({model.workers_per_node + 1} workers or more) each update takes"
            f" {1000 * per_update:.3g} ms longer."
        )
    return text


def work_words(model: Model) -> str:
    """Whether a training scales strongly or weakly, and how its updates go along."""
    series = model.series
    samples = f"{series.samples:,} samples" if series.samples else ""
    if series.work == "weak":
        start = f", from {samples} on {_workers(series.key.workers)}" if samples else ""
        return f"weak scaling: the work of a training grows with the workers{start}"
    if series.of != "training" or not samples:
        return "strong scaling, if all counts did the same work, which is not recorded"
    updates = {
        "growing": ", by fewer updates on more workers, whose global batch grows",
        "fixed": ", by as many updates on any number of workers, which share one global batch",
        None: "",
    }[series.update if len(series.different) > 1 else None]
    return f"strong scaling: every training processes {samples}{updates}"


def _workers(count: int) -> str:
    return f"{count} worker" + ("" if count == 1 else "s")
