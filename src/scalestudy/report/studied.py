"""What was studied, for the first lines of a report: model, data, hardware, software and dates."""

from collections.abc import Sequence
from pathlib import Path

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Run
from scalestudy.config.file import Study
from scalestudy.plugins.engines import package_labels
from scalestudy.report.document import FactList
from scalestudy.store.study_folder import StudyFolder

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
    parameters = sorted(
        {run.result.parameters for run in runs if run.result.parameters}
    )
    count = " to ".join(
        f"{number:,}" for number in dict.fromkeys((*parameters[:1], *parameters[-1:]))
    )
    name = Path(study.task).name if study else ""
    return ", ".join(filter(None, (name, f"{count} parameters" if count else "")))


def _data(study: Study | None, runs: Sequence[Run]) -> str:
    source = (study.data.source or study.defaults.source or "") if study else ""
    name = Path(source).name or source
    samples = sorted(
        {run.result.training_samples for run in runs if run.result.training_samples}
    )
    count = " to ".join(
        f"{number:,}" for number in dict.fromkeys((*samples[:1], *samples[-1:]))
    )
    classes = next(
        (run.result.class_names for run in runs if run.result.class_names), []
    )
    parts = (
        name,
        f"{count} training samples" if count else "",
        f"{len(classes)} classes" if classes else "",
    )
    return ", ".join(filter(None, parts))


def _hardware(runs: Sequence[Run]) -> str:
    ranks = [rank for run in runs for rank in run.ranks]
    hosts = sorted({host for run in runs for host in run.result.hosts})
    devices = [name for rank in ranks if rank.device_uuids for name in rank.devices]
    kinds = devices or [rank.cpu_model for rank in ranks]
    nodes = f"{len(hosts)} nodes" if len(hosts) > 1 else ""
    return ", ".join(filter(None, (_listed(kinds), nodes)))


def _software(runs: Sequence[Run]) -> str:
    labels = package_labels()
    versions: dict[str, dict[str, None]] = {}
    for run in runs:
        for rank in run.ranks:
            for package, number in rank.versions.items():
                versions.setdefault(package.lower(), {})[number] = None
    named = [name for name in PACKAGES if name in versions]
    return ", ".join(
        f"{labels.get(name, name.capitalize())} {' / '.join(versions[name])}"
        for name in named
    )


def _dates(runs: Sequence[Run]) -> str:
    days = sorted(run.result.finished[:10] for run in runs if run.result.finished)
    when = " to ".join(dict.fromkeys((*days[:1], *days[-1:])))
    count = f"{len(runs)} finished" if runs else ""
    return ", ".join(filter(None, (count, when)))


def _listed(names: Sequence[str]) -> str:
    distinct = [name for name in dict.fromkeys(names) if name]
    more = len(distinct) - MOST_NAMES
    shown = "; ".join(distinct[:MOST_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown
