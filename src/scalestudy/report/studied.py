"""What was studied, for the first lines of a report: model, data, hardware, software and dates."""

from collections.abc import Sequence
from pathlib import Path

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Run
from scalestudy.config.file import Study
from scalestudy.plugins.engines import package_labels
from scalestudy.report.document import FactList
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.text import join_first

MOST_NAMES = 3
"""Largest number of classes, processors, devices or nodes that are named."""
PACKAGES = ("tensorflow", "torch", "keras", "horovod")
"""Packages whose versions readers ask for first."""


def study_in_folder(findings: Findings) -> Study | None:
    """The study as its file describes it; None if there are only numbers."""
    if findings.folder is None:
        return None
    return StudyFolder.open(findings.folder).study


def title_of(findings: Findings) -> str:
    """Title of the report: that of the study file, else the study's name."""
    study = study_in_folder(findings)
    if study and study.title:
        return study.title
    return findings.name


def what_was_studied(findings: Findings) -> FactList | None:
    """FactList on the study; those that are unknown are left out, and None if all are."""
    study = study_in_folder(findings)
    runs = findings.runs
    rows = (
        ("Model", _model(study, runs)),
        ("Data", _data(study, runs)),
        ("Hardware", _hardware(runs)),
        ("Software", _software(runs)),
        ("Runs", _dates(runs)),
    )
    known = []
    for name, text in rows:
        if text:
            known.append((name, text))
    if not known:
        return None
    return FactList(tuple(known))


def _model(study: Study | None, runs: Sequence[Run]) -> str:
    parts = []
    if study:
        parts.append(Path(study.task).name)
    # Swept settings may change the size of the model.
    parameters = [*filter(None, [run.result.parameters for run in runs])]
    if parameters:
        parts.append(f"{_range(parameters)} parameters")
    return ", ".join(filter(None, parts))


def _data(study: Study | None, runs: Sequence[Run]) -> str:
    source = ""
    if study:
        source = study.data.source or study.defaults.source or ""
    # Of a path, the last part is the name of the data.
    parts = [Path(source).name or source]
    sizes = [*filter(None, [run.result.training_samples for run in runs])]
    if sizes:
        parts.append(f"{_range(sizes)} training samples")
    for run in runs:
        if run.result.class_names:
            parts.append(f"{len(run.result.class_names)} classes")
            break
    return ", ".join(filter(None, parts))


def _range(numbers: Sequence[int]) -> str:
    """The smallest and the largest number: `1,000 to 2,000`."""
    least = min(numbers)
    most = max(numbers)
    if least == most:
        return f"{most:,}"
    return f"{least:,} to {most:,}"


def _hardware(runs: Sequence[Run]) -> str:
    devices: list[str] = []
    processors = []
    for run in runs:
        for rank in run.ranks:
            processors.append(rank.cpu_model)
            if rank.device_uuids:
                devices += rank.devices
    # Where GPUs computed, the processors are left to the table of the environment.
    parts = [_listed(devices or processors)]
    hosts: set[str] = set()
    for run in runs:
        hosts.update(run.result.hosts)
    if len(hosts) > 1:
        parts.append(f"{len(hosts)} nodes")
    return ", ".join(filter(None, parts))


def _software(runs: Sequence[Run]) -> str:
    labels = package_labels()
    versions: dict[str, dict[str, None]] = {}
    for run in runs:
        for rank in run.ranks:
            for package, number in rank.versions.items():
                # Distributions spell their names in several ways: "TensorFlow", "tensorflow".
                versions.setdefault(package.lower(), {})[number] = None
    parts = []
    for name in PACKAGES:
        if name in versions:
            label = labels.get(name, name.capitalize())
            numbers = " / ".join(versions[name])
            parts.append(f"{label} {numbers}")
    return ", ".join(parts)


def _dates(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    parts = [f"{len(runs)} finished"]
    days = set()
    for run in runs:
        if run.result.finished:
            days.add(run.result.finished[:10])
    if days:
        first = min(days)
        last = max(days)
        period = first
        if last != first:
            period = f"{first} to {last}"
        parts.append(period)
    return ", ".join(parts)


def _listed(names: Sequence[str]) -> str:
    distinct = [*filter(None, dict.fromkeys(names))]
    return join_first(distinct, most=MOST_NAMES, separator="; ")
