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
    return StudyFolder.open(findings.folder).study if findings.folder else None


def title_of(findings: Findings) -> str:
    """Title of the report: that of the study file, else the study's name."""
    study = study_in_folder(findings)
    return study.title if study and study.title else findings.name


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
    known = tuple((name, text) for name, text in rows if text)
    return FactList(known) if known else None


def _model(study: Study | None, runs: Sequence[Run]) -> str:
    parts = []
    if study:
        parts.append(Path(study.task).name)
    parameters = [run.result.parameters for run in runs if run.result.parameters]
    if parameters:
        parts.append(f"{_range(parameters)} parameters")
    return ", ".join(filter(None, parts))


def _data(study: Study | None, runs: Sequence[Run]) -> str:
    source = ""
    if study:
        source = study.data.source or study.defaults.source or ""
    parts = [Path(source).name or source]
    sizes = [r.result.training_samples for r in runs if r.result.training_samples]
    if sizes:
        parts.append(f"{_range(sizes)} training samples")
    for run in runs:
        if run.result.class_names:
            parts.append(f"{len(run.result.class_names)} classes")
            break
    return ", ".join(filter(None, parts))


def _range(numbers: Sequence[int]) -> str:
    """The smallest and the largest number: `1,000 to 2,000`."""
    ends = dict.fromkeys((min(numbers), max(numbers)))
    return " to ".join(f"{number:,}" for number in ends)


def _hardware(runs: Sequence[Run]) -> str:
    devices: list[str] = []
    processors = []
    for run in runs:
        for rank in run.ranks:
            processors.append(rank.cpu_model)
            if rank.device_uuids:
                devices += rank.devices
    parts = [_listed(devices or processors)]
    hosts = {host for run in runs for host in run.result.hosts}
    if len(hosts) > 1:
        parts.append(f"{len(hosts)} nodes")
    return ", ".join(filter(None, parts))


def _software(runs: Sequence[Run]) -> str:
    labels = package_labels()
    versions: dict[str, dict[str, None]] = {}
    for run in runs:
        for rank in run.ranks:
            for package, number in rank.versions.items():
                versions.setdefault(package.lower(), {})[number] = None
    parts = []
    for name in PACKAGES:
        if name in versions:
            label = labels.get(name, name.capitalize())
            parts.append(f"{label} {' / '.join(versions[name])}")
    return ", ".join(parts)


def _dates(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    parts = [f"{len(runs)} finished"]
    days = [run.result.finished[:10] for run in runs if run.result.finished]
    if days:
        parts.append(" to ".join(dict.fromkeys((min(days), max(days)))))
    return ", ".join(parts)


def _listed(names: Sequence[str]) -> str:
    distinct = [name for name in dict.fromkeys(names) if name]
    return join_first(distinct, most=MOST_NAMES, separator="; ")
