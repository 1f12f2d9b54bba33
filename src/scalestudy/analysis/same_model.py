"""Whether runs that are compared trained the same model, by what they recorded of it.

The sources of a task are part of its points, but a task may also read its layers from a file, or import a
module by a computed name. Such a dependency is unknown before the runs, and shows only in their records.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from scalestudy.analysis.runs import Run
from scalestudy.config.point import REPEATS, without_repeats

MODEL = "model"
"""Name of the value by which rows of different models are kept apart, beside the swept values."""
MOST_NAMED = 4
"""Largest number of models that a sentence lists."""
_REMEDY = (
    "The task depends on more than its sources, such as a file that it reads: restore it, and repeat the runs"
    " in another folder (--out)."
)


def keep_models_apart(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Return the runs, those of different models under different swept values, with sentences on this.

    Runs of one engine with the same swept values must have models of the same shapes, and at the same seed
    and split the same initial weights. What was not recorded agrees with everything.
    """
    alike: dict[Hashable, list[Run]] = defaultdict(list)
    for run in runs:
        # Tables from elsewhere say nothing about the model.
        if not run.foreign:
            swept = sorted(without_repeats(run.result.swept).items())
            alike[run.result.engine, repr(swept)].append(run)
    named: dict[int, str] = {}
    sentences: list[str] = []
    for members in alike.values():
        models = _models(members)
        names = dict.fromkeys(models.values())
        if len(names) > 1:
            named |= models
            sentences.append(
                f"Runs with the same settings trained different models ({_listed(names)}), which are kept"
                f" apart. {_REMEDY}"
            )
        # Models of unlike shapes begin unlike, which needs no second sentence.
        elif unequal := _unequal_beginnings(members):
            sentences.append(
                f"{' and '.join(unequal[:2])} have the same seed but began with different weights. {_REMEDY}"
            )
    kept_apart = [_under(run, named.get(id(run))) for run in runs]
    return kept_apart, sentences


def _models(runs: Iterable[Run]) -> Mapping[int, str]:
    """Name of the model of each run that recorded one, by the run's id."""
    recorded: dict[int, tuple[int, str]] = {}
    shapes: dict[int, set[str]] = defaultdict(set)
    for run in runs:
        parameters = run.result.parameters
        digest = run.result.shapes_digest
        if parameters is None:
            continue
        recorded[id(run)] = parameters, digest
        if digest:
            shapes[parameters].add(digest)
    names = {}
    for place, (parameters, digest) in recorded.items():
        names[place] = f"{parameters:,} parameters"
        if len(shapes[parameters]) > 1:  # as many, in other layers
            names[place] += f", shapes {digest[:6] or 'unknown'}"
    return names


def _unequal_beginnings(runs: Iterable[Run]) -> list[str]:
    """Names of runs of one seed and split whose initial weights differ; empty if there are none."""
    begun: dict[Hashable, dict[str, str]] = defaultdict(dict)
    for run in runs:
        result = run.result
        if result.initial_digest and result.seed is not None:
            splits = [repr(result.swept.get(name)) for name in REPEATS]
            block = (result.seed, *splits)
            row = result.strategy, result.workers
            begun[row, block].setdefault(result.initial_digest, result.name)
    for names in begun.values():
        if len(names) > 1:
            return list(names.values())
    return []


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    text = "; ".join(every[:MOST_NAMED])
    left = len(every) - MOST_NAMED
    if left > 0:
        text += f"; and {left} more"
    return text


def _under(run: Run, model: str | None) -> Run:
    if model is None:
        return run
    swept: dict[str, Any] = {**run.result.swept, MODEL: model}
    return replace(run, result=run.result.model_copy(update={"swept": swept}))
