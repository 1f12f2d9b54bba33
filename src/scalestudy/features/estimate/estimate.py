"""What larger runs of a study are expected to take, before one of them is started."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.features.estimate.folders import of_another, refuse_others
from scalestudy.features.estimate.network_options import NetworkOptions, network_of
from scalestudy.conduct.listener import Listener
from scalestudy.errors import UserError

if TYPE_CHECKING:
    from scalestudy.features.estimate.foresee import Wish
    from scalestudy.analysis.runs import Run
    from scalestudy.conduct.request import Request
    from scalestudy.features.estimate.records import EstimateRecord
    from scalestudy.study.file import Study
    from scalestudy.study.point import Point

EPOCHS = 6
"""Of the short runs: one to warm up, and five that count and tell how much epochs differ."""


@dataclass(frozen=True)
class Estimated:
    """An estimate.

    Attributes:
        record: What is expected.
        kept: The one that stays in the study's folder, since it was made before anything was measured; None
            if this one is there now.
        results: The study's folder.
        unkept: Why it could not be kept there; "" if it was.
    """

    record: "EstimateRecord"
    kept: "EstimateRecord | None"
    results: Path
    unkept: str = ""


def estimate(
    what: Path,
    network: NetworkOptions,
    wish: "Wish | None" = None,
    *,
    measure: bool = False,
    listener: Listener | None = None,
) -> Estimated:
    """Estimate a study, and keep that in its folder where that can be written to.

    Args:
        what: Study file, or results folder.
        network: What is said of the network.
        wish: What is to be foreseen.
        measure: Whether to run what is missing of one worker here, shortly.
        listener: Is told what happens.

    Raises:
        UserError: If something is not right, or nothing is there to go by.
        RunError: If a short run fails.
    """
    from scalestudy.features.estimate.foresee import Wish, foresee, ones_of
    from scalestudy.features.estimate.kept import keep, one_worker_folder

    wish = wish or Wish()
    about = _subject(what, network)
    found = network_of(about.network, about.base)
    folders = about.results, one_worker_folder(about.results)
    others = [text for folder in folders if (text := of_another(folder, about.study))]
    runs = [run for folder in folders if not of_another(folder, about.study) for run in _runs(folder)]
    lacking = [point for point in about.points if _can_have_several(point) and not ones_of(point, runs)[0]]
    if measure and lacking:
        _measure(about, lacking, listener or Listener())
        runs = [run for folder in folders if not of_another(folder, about.study) for run in _runs(folder)]
    before = not any(run.result.workers > 1 for run in _runs(about.results))
    record = foresee(about.name, about.points, runs, found, wish, before=before)
    if not record.series:
        raise UserError(
            "finished runs of one worker to go by, and a network that is known",
            "; ".join([*record.missing, *others]) or "a study of one worker only",
            _how_to_measure(what) if about.request else _NAME_THE_FILE,
        )
    try:
        return Estimated(record, keep(about.results, record), about.results)
    except OSError as error:
        return Estimated(record, None, about.results, error.strerror or str(error))


_NAME_THE_FILE = "Name the study file with --measure, or run the study with 1 among its workers."


def _how_to_measure(what: Path) -> str:
    return (
        f"Add --measure to time one shortly on this machine (`scalestudy estimate {shlex.quote(str(what))} "
        "--measure`), or run the study with 1 among its workers."
    )


@dataclass(frozen=True)
class _About:
    name: str
    points: "Sequence[Point]"
    results: Path
    base: Path
    network: NetworkOptions
    study: "Study"
    request: "Request | None" = None


def _subject(what: Path, network: NetworkOptions) -> _About:
    """A study file with its folder, or the folder alone; a study's own site states its network."""
    from scalestudy.conduct.request import request_of
    from scalestudy.conduct.task_data import with_task_data
    from scalestudy.study.store import StudyFolder

    if what.is_dir():
        folder = StudyFolder.open(what)
        network = _with_own_site(network, folder.study)
        beside = what.absolute().parents[1]  # studies/NAME lies beside the study file
        return _About(folder.name, folder.points(), what, beside, network, folder.study)
    request = request_of(what)
    study, _ = with_task_data(request.study)
    network = _with_own_site(network, study)
    return _About(study.name, _points(study), request.target, request.base, network, study, request)


def _with_own_site(network: NetworkOptions, study: "Study") -> NetworkOptions:
    """The study's own site states the network where nothing else does."""
    said = (network.site, network.checks, network.bandwidth, network.latency, network.node_bandwidth)
    return network if any(said) else replace(network, site=study.launch.site)


def _points(study: "Study") -> "list[Point]":
    """What a study asks for, wherever it may run."""
    from scalestudy.conduct.check_subject import EVERYTHING
    from scalestudy.study.expand import expand

    return expand(study, gpus=EVERYTHING, cores=EVERYTHING)


def _runs(folder: Path) -> "tuple[Run, ...]":
    from scalestudy.analysis.read import read_study
    from scalestudy.study.store import StudyFolder

    return read_study(StudyFolder.open(folder)).runs if (folder / "study.json").exists() else ()


def _can_have_several(point: "Point") -> bool:
    from scalestudy.study.strategies import traits

    kind = traits(point.strategy)
    return kind.most_workers != 1 and kind.timed


def _measure(about: _About, points: "Sequence[Point]", listener: Listener) -> None:
    """Run one short run of one worker for each of these strategies, on this machine."""
    from scalestudy.conduct.run import run_study
    from scalestudy.features.estimate.kept import one_worker_folder

    if about.request is None:
        raise UserError(
            "a study file for --measure, from which its data can be found",
            f"{about.results}, a results folder",
            "Name the study file.",
        )
    short = short_study(about.request.study, points)
    target = one_worker_folder(about.results)
    refuse_others(target, short)
    run_study(replace(about.request, study=short, target=target), listener=listener, report=False)


def short_study(study: "Study", points: "Sequence[Point]") -> "Study":
    """A study of one worker, one seed and a few epochs for the strategies of these points.

    Under a global batch a quarter of it is timed too: larger runs have smaller slices, and what a step costs
    whatever its slice shows only between two sizes.
    """
    from scalestudy.study.launchers import DEFAULT

    batches = sorted({point.train.batch_size for point in points})
    rule = points[0].train.batch
    other = {name: values for name, values in study.sweep.other.items() if name != "train.batch_size"}
    if rule == "global":
        batches = sorted({size for each in batches for size in (each, max(1, each // 4))})
    if len(batches) > 1:
        other["train.batch_size"] = batches
    sweep = study.sweep.model_copy(
        update={
            "strategy": tuple(dict.fromkeys(point.strategy for point in points)),
            "workers": (1,),
            "seed": study.sweep.seed[:1],
            "other": other,
        }
    )
    epochs = min(EPOCHS, *(point.train.epochs for point in points))
    changed: dict[str, Any] = {"epochs": epochs, "keep_best": "none", "gallery": False}
    if len(batches) == 1:
        changed["batch_size"] = batches[0]
    launch = study.launch.model_copy(update={"on": DEFAULT, "site": None})
    train = study.train.model_copy(update=changed)
    return study.model_copy(update={"sweep": sweep, "train": train, "launch": launch})
