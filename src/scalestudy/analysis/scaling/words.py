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
    found = [limit_sentence(model), lack_sentence(model)]
    if model.series.others:
        left = ", ".join(str(count) for count in model.series.others)
        found.append(
            f"Left out of its scaling model, since they process other numbers of samples: {left} workers."
        )
    return [sentence for sentence in found if sentence]


def limit_sentence(model: Model) -> str:
    """The limit of speed-up with its interval; empty where nothing can be said (`Model.limit`)."""
    limit = model.limit
    if limit.value is None:
        return ""
    relative = f" (relative to {model.reference} workers)" if model.reference > 1 else ""
    return (
        f"If its times go on as measured, speed-up{relative} stays below {limit.value:.3g}"
        f" (95 % interval {limit.low:.3g} to {limit.high:.3g}) on any number of workers."
    )


def lack_sentence(model: Model) -> str:
    """How far the model is off where it misses something; empty where it does not."""
    if not model.lack_of_fit:
        return ""
    assert model.fit is not None
    count, off = model.fit.worst
    return (
        f"Its scaling model misses something: it is {100 * abs(off):.2g} % off at {_workers(count)}, so its"
        " predictions of other counts are unsure."
    )


def fit_words(model: Model, name: str) -> str:
    """The model, what it consists of, and how well it holds. `name` is the series'."""
    fit = model.fit
    assert fit is not None
    of = "" if model.series.of == "training" else f" ({TIMES[model.series.of].lower()})"
    parts = [NAMES[part] for part in fit.parts if part in NAMES]
    text = f"{name}: {fit.written}{of}"
    text += f", with {' and '.join(parts)}. " if parts else ", work that is shared out and nothing else. "
    count, off = fit.worst
    held = (
        "The mean times lie on it."
        if abs(off) < 1e-6
        else f"The mean times are off by {100 * abs(off):.2g} % at most (at {_workers(count)})."
    )
    return text + held + _second_node(model)


def work_words(model: Model) -> str:
    """Whether a training scales strongly or weakly, and how its updates go along."""
    series = model.series
    known = f"{series.samples:,} samples" if series.samples else ""
    if series.work == "weak":
        start = f", from {known} on {_workers(series.key.workers)}" if known else ""
        return f"weak scaling: the work of a training grows with the workers{start}"
    if series.of != "training" or not known:
        return "strong scaling, if all counts did the same work, which is not recorded"
    updates = {
        "growing": ", by fewer updates on more workers, whose global batch grows",
        "fixed": ", by as many updates on any number of workers, which share one global batch",
        None: "",
    }[series.update if len(series.different) > 1 else None]
    return f"strong scaling: every training processes {known}{updates}"


def _second_node(model: Model) -> str:
    series = model.series
    extra = model.fit.parts.get("second node") if model.fit else None
    if not extra or not series.updates or model.workers_per_node is None:
        return ""
    # The coefficient is of all updates of a training on one worker.
    per_update = extra / series.updates / (series.key.workers if series.update == "growing" else 1)
    return (
        f" From the second node on ({model.workers_per_node + 1} workers or more) each update takes"
        f" {1000 * per_update:.3g} ms longer."
    )


def _workers(count: int) -> str:
    return f"{count} worker" + ("" if count == 1 else "s")
