"""Whether runs that are compared trained the same model, by what they recorded of it.

The sources of a task are part of its points, but a task may also read its layers from a file, or import a
module by a computed name. Such a dependency is unknown before the runs, and shows only in their records.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scalestudy.analysis.runs import Run
from scalestudy.config.point import REPEATS, without_repeats

MODEL = "model"
"""Name of the value by which rows of different models are kept apart, beside the swept values."""


@dataclass(frozen=True)
class UnlikeModels:
    """Runs with the same settings that trained different models, which are kept apart."""

    models: tuple[str, ...]


@dataclass(frozen=True)
class UnlikeBeginnings:
    """Runs with the same seed that began with different weights, by their names."""

    runs: tuple[str, ...]


Unlike = UnlikeModels | UnlikeBeginnings


def keep_models_apart(
    runs: Sequence[Run],
) -> tuple[list[Run], list[Unlike]]:
    """Return the runs, those of different models under different swept values, and what is unlike of them.

    Runs of one engine with the same swept values must have models of the same shapes, and at the same seed
    and split the same initial weights. What was not recorded agrees with everything.
    """
    alike: dict[Hashable, list[Run]] = defaultdict(list)
    for run in runs:
        # Tables from elsewhere say nothing about the model.
        if not run.foreign:
            swept = without_repeats(run.result.swept)
            # As text: swept values may be lists, which cannot be keys.
            settings = repr(sorted(swept.items()))
            alike[run.result.engine, settings].append(run)
    named: dict[int, str] = {}
    unlike: list[Unlike] = []
    for members in alike.values():
        models = _models(members)
        names = dict.fromkeys(models.values())
        if len(names) > 1:
            named |= models
            unlike.append(UnlikeModels(tuple(names)))
        # Models of unlike shapes begin unlike, which needs no second sentence.
        elif begun := _unequal_beginnings(members):
            unlike.append(UnlikeBeginnings(tuple(begun)))
    kept_apart = []
    for run in runs:
        model = named.get(id(run))
        kept_apart.append(_under(run, model))
    return kept_apart, unlike


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
        name = f"{parameters:,} parameters"
        # As many parameters in other layers are another model.
        if len(shapes[parameters]) > 1:
            shape = digest[:6] or "unknown"
            name += f", shapes {shape}"
        names[place] = name
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
            names = begun[row, block]
            names.setdefault(result.initial_digest, result.name)
    for names in begun.values():
        if len(names) > 1:
            return list(names.values())
    return []


def _under(run: Run, model: str | None) -> Run:
    if model is None:
        return run
    swept = run.result.swept | {MODEL: model}
    result = run.result.model_copy(update={"swept": swept})
    return replace(run, result=result)
