"""What a law says, in sentences."""

from scalestudy.analysis.scaling.choose import FOR_MORE, Choice
from scalestudy.analysis.scaling.model import Model
from scalestudy.analysis.scaling.series import TIMES

SMALL = 0.02
"""Residuals below this are called small."""


def limits_of(model: Model, target: float) -> list[str]:
    """How far the strategy goes by its law, for the decision; empty without a law."""
    fit, series = model.fit, model.series
    if fit is None or model.choice is None:
        return []
    name = model.choice.fit.law.name
    broken = " with a break at the second node" if fit is not model.choice.fit else ""
    if name == "amdahl":
        found = [_amdahl(model, target, broken)]
    elif name == "gustafson":
        first, each = fit.coefficients
        share, all_of = f"{100 * first / (first + each):.1f} %", each * model.reference
        found = [
            "Its work grows with the workers (weak scaling): Gustafson's law fitted to its training times"
            f" gives a serial share of {share}, so that scaled efficiency{_relative(model)} does not fall"
            f" below {all_of / (first + all_of):.2f}."
        ]
    else:
        found = [
            f"Its training times follow a law with communication{broken}, {fit.written}, rather than"
            f" Amdahl's: {_least(model)}{_falls(model, target)}."
        ]
    if series.others:
        left = ", ".join(str(count) for count in series.others)
        found.append(f"Left out of that law, since they process other numbers of samples: {left} workers.")
    if model.second_node and model.second_node.fit:
        found.append(model.second_node.sentence)
    return found


def chosen_words(model: Model, choice: Choice, name: str) -> str:
    """Why this law was chosen, and how well it holds. `name` is the series'."""
    fit = choice.fit
    worst = max(fit.residuals, key=lambda count: abs(fit.residuals[count]))
    off = 100 * abs(fit.residuals[worst])
    noun = "worker" if worst == 1 else "workers"
    if off < 1e-4:
        held = "the mean times lie on it"
    else:
        held = f"the mean times are off by {off:.2g} % at most (at {worst} {noun})"
    if fit.lacks:
        held += (
            ", further than runs of one count scatter: the law misses something, and intervals allow for it"
        )
    if len(choice.trials) > 1:
        tried = ", ".join(f"to {100 * trial.error:.2g} % by {trial.law.label}" for trial in choice.trials)
        why = f"Counts left out of the fit are foretold {tried}"
        simpler = choice.trials[0].law
        if fit.law is simpler and choice.trials[-1].error >= choice.error:
            why += ": more terms gain nothing"
        elif fit.law is simpler:
            why += ": too little is gained by more terms"
    elif len(fit.counts) < FOR_MORE and not fit.law.reciprocal:
        why = f"Below {FOR_MORE} different counts no law of more terms is tried"
    else:
        why = f"Counts left out of the fit are foretold to {100 * choice.error:.2g} %"
    of = "" if model.series.of == "training" else f" ({TIMES[model.series.of].lower()})"
    return f"{name} follows {fit.law.label}, {fit.written}{of}; {held}. {why}."


def work_words(model: Model) -> str:
    """Whether the scaling is strong or weak, of a training and of an update."""
    series = model.series
    known = f"{series.samples:,} samples" if series.samples else ""
    if series.work == "weak":
        training = "weak scaling: the work of a training grows with the workers" + (
            f", from {known} on {_workers(series.key.workers)}" if known else ""
        )
    elif series.of == "training" and known:
        training = f"strong scaling: every training processes {known}"
    else:
        training = "strong scaling, if all counts did the same work, which is not recorded"
    update = {
        "growing": "; the global batch grows with the workers, so that each worker's part of an update"
        " stays the same" + (" and updates become fewer" if series.work == "strong" else ""),
        "fixed": "; the global batch stays the same, so that each worker's part of an update shrinks",
        None: "",
    }[series.update if len(series.different) > 1 else None]
    return training + update


def _amdahl(model: Model, target: float, broken: str) -> str:
    fit, limit = model.fit, model.limit
    assert fit is not None
    serial, shared = fit.coefficients[:2]
    if limit is None:
        return "Amdahl's law fitted to its training times finds no serial part."
    return (
        f"Amdahl's law{broken} fitted to its training times gives a serial share of"
        f" {100 * serial / (serial + shared):.1f} %: speed-up{_relative(model)} cannot exceed"
        f" {limit:.3g}{_falls(model, target)}."
    )


def _relative(model: Model) -> str:
    """What speed-up and efficiency are against, where that is not one worker."""
    return f" (relative to {model.reference} workers)" if model.reference > 1 else ""


def _falls(model: Model, target: float) -> str:
    reach = model.falls_to(target)
    if reach is None or model.fit is None:
        return ""
    if reach <= model.series.key.workers:
        return f", and efficiency{_relative(model)} is below {target:g} throughout"
    beyond = " (beyond the counts tried, so a prediction)" if reach > model.fit.largest else ""
    return f", and efficiency{_relative(model)} falls to {target:g} at about {reach:,.0f} workers{beyond}"


def _least(model: Model) -> str:
    """At how many workers the time is least."""
    import numpy as np

    fit = model.fit
    assert fit is not None
    grid = np.unique(np.round(np.geomspace(fit.smallest, 1e5, 4000)))
    times = fit.law.seconds(grid, fit.coefficients)
    best = int(grid[int(times.argmin())])
    if best >= grid[-1]:
        return "they fall ever more slowly"
    beyond = " (beyond the counts tried, so a prediction)" if best > fit.largest else ""
    return f"they are least at about {best:,} workers{beyond} and grow from there on"


def _workers(count: int) -> str:
    return f"{count} worker" + ("" if count == 1 else "s")
