"""What larger runs of a study are expected to take, before one of them is started."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.util.errors import UserError
from scalestudy.util.units import bandwidth_of, latency_of

if TYPE_CHECKING:
    from scalestudy.analysis.runs import Run
    from scalestudy.app.listener import Listener
    from scalestudy.app.request import Request
    from scalestudy.features.estimate.network import KnownNetwork, Stated, TimedAllReduce
    from scalestudy.features.estimate.prediction import Question
    from scalestudy.features.estimate.records import EstimateRecord
    from scalestudy.launch.queue.site import Site
    from scalestudy.study.file import Study
    from scalestudy.study.point import Point

EPOCHS = 6
"""Of the short runs: one to warm up, and five that count and show how much epochs differ."""
MAY_DIFFER = ("epochs", "batch_size", "batch", "keep_best", "gallery")
"""Settings that are read run by run, or that cost no step anything."""


@dataclass(frozen=True)
class NetworkOptions:
    """What the user states of the network; texts as typed, None where nothing was given.

    Attributes:
        checks: Files of `check --format json` and `topology --format json`, or folders of checks.
        site: Name or path of a site profile that states its network.
        bandwidth: Of a node's link to the network.
        latency: Of the smallest message between nodes.
        node_bandwidth: Between devices of a node.
        node_latency: Likewise.
        storage_bandwidth: Of the shared file system.
        per_node: Workers of a node.
    """

    checks: tuple[Path, ...] = ()
    site: str | None = None
    bandwidth: str | None = None
    latency: str | None = None
    node_bandwidth: str | None = None
    node_latency: str | None = None
    storage_bandwidth: str | None = None
    per_node: int | None = None


@dataclass(frozen=True)
class Estimated:
    """An estimate.

    Attributes:
        record: What is expected.
        stored: The one that stays in the study's folder, since it was made before anything was measured; None
            if this one is there now.
        results: The study's folder.
        not_stored: Why it could not be stored there; "" if it was.
    """

    record: "EstimateRecord"
    stored: "EstimateRecord | None"
    results: Path
    not_stored: str = ""


def estimate(
    folder: Path,
    network: NetworkOptions,
    question: "Question | None" = None,
    *,
    measure: bool = False,
    listener: "Listener | None" = None,
) -> Estimated:
    """Estimate a study, and store that in its folder where that can be written to.

    Args:
        folder: The study's results folder, or its study file.
        network: What is stated of the network.
        question: What is to be predicted.
        measure: Whether to run what is missing of one worker here, shortly.
        listener: Is told what happens.

    Raises:
        UserError: If something is not right, or nothing was measured to start from.
        RunError: If a short run fails.
    """
    from scalestudy.features.estimate.prediction import Question, can_scale, one_worker_runs, predict
    from scalestudy.features.estimate.records import one_worker_folder, store
    from scalestudy.study.run_folder import RunFolder

    subject = _subject(folder, network)
    known = network_of(subject.network, subject.base)
    folders = subject.results, one_worker_folder(subject.results)
    differ = {path: _differences(path, subject.study) for path in folders}
    runs = {path: _runs(path) for path in folders}

    def usable() -> "list[Run]":
        return [run for path in folders if not differ[path] for run in runs[path]]

    lacking = [
        point for point in subject.points if can_scale(point) and not one_worker_runs(point, usable())[0]
    ]
    if measure and lacking:
        _measure(subject, lacking, listener)
        short = folders[1]
        differ[short], runs[short] = "", _runs(short)
    before = not any(run.result.workers > 1 for run in runs[subject.results])
    steps = {
        run.result.name: record
        for path in reversed(folders)
        for run in runs[path]
        if run.result.workers == 1 and run.folder and not differ[path]
        for record in RunFolder(path / run.folder).steps()
    }
    record = predict(
        subject.name, subject.points, usable(), known, question or Question(), before=before, steps=steps
    )
    if not record.series:
        others = [f"{path}, of another study: {text}" for path, text in differ.items() if text]
        run_it = "run the study with 1 among its workers."
        raise UserError(
            "finished runs of one worker, and a network that is known",
            "; ".join([*record.missing, *others]) or "a study of one worker only",
            f"Add --measure to time one shortly on this machine (`scalestudy estimate "
            f"{shlex.quote(str(folder))} --measure`), or {run_it}"
            if subject.request
            else f"Name the study file with --measure, or {run_it}",
        )
    try:
        return Estimated(record, store(subject.results, record), subject.results)
    except OSError as error:
        return Estimated(record, None, subject.results, error.strerror or str(error))


@dataclass(frozen=True)
class _Subject:
    name: str
    points: "Sequence[Point]"
    results: Path
    base: Path
    network: NetworkOptions
    study: "Study"
    request: "Request | None" = None


def _subject(what: Path, network: NetworkOptions) -> _Subject:
    """A study file with its folder, or the folder alone; a study's own site states its network."""
    from scalestudy.app.check_subject import EVERYTHING
    from scalestudy.app.request import request_of
    from scalestudy.app.task_data import with_task_data
    from scalestudy.study.expand import expand
    from scalestudy.study.store import StudyFolder

    def with_site(study: "Study") -> NetworkOptions:
        given = (network.site, network.checks, network.bandwidth, network.latency, network.node_bandwidth)
        return network if any(given) else replace(network, site=study.launch.site)

    if what.is_dir():
        folder = StudyFolder.open(what)
        study, base = folder.study, what.absolute().parents[1]  # studies/NAME lies beside the study file
        return _Subject(folder.name, folder.points(), what, base, with_site(study), study)
    request = request_of(what)
    study, _ = with_task_data(request.study)
    points = expand(study, gpus=EVERYTHING, cores=EVERYTHING)
    return _Subject(study.name, points, request.target, request.base, with_site(study), study, request)


def _runs(folder: Path) -> "tuple[Run, ...]":
    from scalestudy.analysis.read import read_study
    from scalestudy.study.store import StudyFolder

    return read_study(StudyFolder.open(folder)).runs if (folder / "study.json").exists() else ()


def _differences(folder: Path, study: "Study") -> str:
    """What a folder's runs computed otherwise than the study asks for now; "" for nothing.

    Epochs and batches may differ, and how workers exchange.
    """
    from scalestudy.study.differences import differences
    from scalestudy.study.store import StudyFolder

    if not (folder / "study.json").exists():
        return ""
    recorded = StudyFolder.open(folder).study
    train = {name: getattr(recorded.train, name) for name in MAY_DIFFER}
    launch = {name: getattr(study.launch, name) for name in ("device", "cpus_per_worker")}
    alike = study.model_copy(
        update={
            "sweep": recorded.sweep,
            "train": study.train.model_copy(update=train),
            "launch": recorded.launch.model_copy(update=launch),
        }
    )
    return "; ".join(differences((recorded, []), (alike, [])))


def _measure(subject: _Subject, points: "Sequence[Point]", listener: "Listener | None") -> None:
    """Run one short run of one worker for each of these strategies, on this machine."""
    from scalestudy.app.listener import Listener
    from scalestudy.app.run import run_study
    from scalestudy.features.estimate.records import one_worker_folder
    from scalestudy.study.differences import refuse_other_study
    from scalestudy.study.store import StudyFolder

    if subject.request is None:
        raise UserError(
            "a study file for --measure, from which its data can be found",
            f"{subject.results}, a results folder",
            "Name the study file.",
        )
    short, target = short_study(subject.request.study, points), one_worker_folder(subject.results)
    if (target / "study.json").exists():
        try:
            refuse_other_study(target, (StudyFolder.open(target).study, []), (short, []))
        except UserError as error:
            advice = f"Remove {target}: its short runs are of the study as it was."
            raise UserError(error.expected, error.received, advice) from None
    request = replace(subject.request, study=short, target=target)
    run_study(request, listener=listener or Listener(), report=False)


def short_study(study: "Study", points: "Sequence[Point]") -> "Study":
    """A study of one worker, one seed and a few epochs for the strategies of these points.

    Under a global batch a quarter of it is timed too: larger runs have smaller slices, and what a step costs
    whatever its slice shows only between two sizes.
    """
    from scalestudy.study.launchers import DEFAULT

    batches = {point.train.batch_size for point in points}
    if points[0].train.batch == "global":
        batches |= {max(1, size // 4) for size in batches}
    other = {name: values for name, values in study.sweep.other.items() if name != "train.batch_size"}
    epochs = min(EPOCHS, *(point.train.epochs for point in points))
    changed: dict[str, Any] = {"epochs": epochs, "keep_best": "none", "gallery": False}
    if len(batches) > 1:
        other["train.batch_size"] = sorted(batches)
    else:
        changed["batch_size"] = batches.pop()
    sweep = study.sweep.model_copy(
        update={
            "strategy": tuple(dict.fromkeys(point.strategy for point in points)),
            "workers": (1,),
            "seed": study.sweep.seed[:1],
            "other": other,
        }
    )
    launch = study.launch.model_copy(update={"on": DEFAULT, "site": None})
    train = study.train.model_copy(update=changed)
    return study.model_copy(update={"sweep": sweep, "train": train, "launch": launch})


def network_of(options: NetworkOptions, base: Path) -> "KnownNetwork":
    """The network; options count before the site's profile, and both before what was measured.

    Args:
        options: What is stated.
        base: Folder that a site's relative path is seen from.

    Raises:
        UserError: If something of it cannot be read, or if nothing gives a latency and a bandwidth.
    """
    from scalestudy.features.estimate.network import KnownNetwork
    from scalestudy.launch.queue.site import find_site

    site = find_site(options.site, base) if options.site is not None else None
    measured = tuple(row for file in options.checks for row in _timings(file))
    across = _stated(
        {"--bandwidth": options.bandwidth, "--latency": options.latency},
        (site.network_bandwidth, site.network_latency) if site else (None, None), site,
    )  # fmt: skip
    within = _stated(
        {"--node-bandwidth": options.node_bandwidth, "--node-latency": options.node_latency},
        (site.node_bandwidth, site.node_latency) if site else (None, None), site,
    )  # fmt: skip
    storage = options.storage_bandwidth or (site.storage_bandwidth if site else None)
    if across is None and within is None and not measured:
        raise UserError(
            "latency and bandwidth of the network",
            "none" if site is None else f"a site profile ({site.name}) that states none",
            "Measure them, `scalestudy check STUDY --submit --format json > check.json` and `--from-check "
            "check.json`; or state them, `--bandwidth 100Gbit --latency 2us`.",
        )
    return KnownNetwork(
        measured, across, within,
        per_node=options.per_node or (site.machine().workers_per_node(1) if site else None),
        storage=None if storage is None else _value("--storage-bandwidth", storage, bandwidth_of),
        sources=tuple(file.name for file in options.checks),
    )  # fmt: skip


def _stated(
    options: dict[str, str | None], of_site: tuple[str | None, str | None], site: "Site | None"
) -> "Stated | None":
    """A link of which bandwidth and latency are given by two options, else by the site."""
    from scalestudy.features.estimate.network import Stated

    (rate_name, rate), (time_name, time) = options.items()
    source = "stated with the command"
    if rate is None and time is None and site is not None:
        (rate, time), source = of_site, f"stated by the site profile {site.name}"
        rate_name, time_name = "a bandwidth", "a latency"
    if rate is None and time is None:
        return None
    if rate is None or time is None:
        missing, given = (rate_name, time_name) if rate is None else (time_name, rate_name)
        raise UserError(f"{rate_name} and {time_name} together", f"{given} alone", f"Add {missing}.")
    return Stated(_value(rate_name, rate, bandwidth_of), _value(time_name, time, latency_of), source)


def _value(name: str, text: str, read: Any) -> float:
    try:
        return float(read(text))
    except ValueError as error:
        raise UserError(f"{error} for {name}", repr(text), "Correct it.") from None


def _timings(path: Path) -> "list[TimedAllReduce]":
    """All-reduces that a check, or `topology`, has timed."""
    from scalestudy.features.estimate.network import TimedAllReduce
    from scalestudy.study.engines import all_collectives
    from scalestudy.util.files import contents

    file = path / "report.json" if path.is_dir() else path
    names = {each.label: each.name for each in all_collectives()}
    try:
        table = json.loads(contents(file))
        if "all_reduce" in table:
            rows = [row | {"hosts": 1, "collective": names[row["collective"]]} for row in table["all_reduce"]]
        else:
            rows = table["bandwidth"]
        timings = [
            TimedAllReduce(
                str(row["collective"]), int(row["ranks"]),
                None if row.get("hosts") is None else int(row["hosts"]),
                int(row["bytes"]), float(row["seconds"]),
            )
            for row in rows
        ]  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise UserError(
            "what `scalestudy check` or `topology` prints with --format json, or the folder of a check",
            f"{file}: {reason}",
            "Name such a file with --from-check.",
        ) from error
    if not timings:
        raise UserError(
            "a check in which all-reduces were timed", f"{file}, without any",
            "Check again with two ranks or more, and without --skip bandwidth.",
        )  # fmt: skip
    return timings
