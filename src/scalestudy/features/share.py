"""Reduce a study to numbers and words of this package. Everything else, such as names, is left out."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from scalestudy.analysis.runs import Run, epoch_values
from scalestudy.analysis.shared import SharedRun, SharedStudy
from scalestudy.config.catalog import is_ours
from scalestudy.config.class_names import class_keys
from scalestudy.config.differences import settings_of
from scalestudy.config.keys import choices, full_name
from scalestudy.config.metric_senses import known
from scalestudy.launch.launcher import Overview
from scalestudy.launch.queue.site_profile import billing_unit
from scalestudy.store.records import EpochRecord, Outcome, RankRecord, Result
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError

ABOUT = (
    "A study by Scalestudy without names, to compare with: scalestudy compare THIS_FILE YOUR_STUDY."
    " Times are in seconds."
)
OWN_TASK = "own task"
RESULT = (
    *("engine", "strategy", "implementation", "communication", "workers", "seed"),
    *(
        "per_worker_batch",
        "global_batch",
        "epochs",
        "updates",
        "samples_processed",
        "training_samples",
    ),
    *(
        "throughput",
        "steady_epochs",
        "training_seconds",
        "wall_seconds",
        "restarts",
        "phases",
    ),
    *(
        "better",
        "bounded",
        "quality",
        "quality_split",
        "quality_labels",
        "constant_quality",
    ),
    *(
        "best_quality",
        "best_epoch",
        "parameters",
        "shapes_digest",
        "initial_digest",
        "precision",
    ),
    *(
        "evaluated_samples",
        "input_scaling",
        "deterministic",
        "oversubscribed",
        "peak_memory_bytes",
    ),
    *(
        "cpu_percent",
        "gpu_percent",
        "gpus",
        "processes",
        "nodes",
        "usage_of",
        "flops_per_sample",
    ),
    *("began", "finished", "by_script", "place", "blocks"),
)
"""Fields of a result that hold numbers, digests, or words from our own lists."""
RANK = (
    *(
        "rank",
        "size",
        "local_rank",
        "placement_source",
        "threads",
        "devices",
        "nodes_shared",
        "driver",
    ),
    *("cpu_model", "memory_bytes"),
)
"""The same for the record of a rank."""
CHECKED = ("train.loss", "train.metrics", "train.augment", "launch.bucket_size")
"""Keys whose strings are validated when they are read, so they hold only our own words."""
WEIGHTS = ("imagenet", "none")
_SOURCE = re.compile(r"digits|indents(:\d+)?")
_VERSION = re.compile(r"[\w.+!-]{1,60}")


def share_study(
    folder: StudyFolder, runs: Sequence[Run], overview: Overview
) -> SharedStudy:
    """Return a study without names.

    Raises:
        UserError: No run has finished.
    """
    if not runs:
        action = f"Run it first; `scalestudy status {folder.path}` shows how far it is."
        raise UserError(
            "a study with a finished run", f"{folder.path}, which has none", action
        )
    settings, margin = settings_of(folder.study), folder.study.quality_margin
    asked = {key: value for key, value in settings.items() if is_plain(key, value)}
    stripped = _Stripped(runs)
    return SharedStudy(
        scalestudy_share=1,
        about=ABOUT,
        study=str(asked.get("task", OWN_TASK)),
        bill=billing_unit(folder) or "worker",
        margin=margin.key if margin else None,
        asked=asked,
        points=dict(Counter(status.state for status in overview.points)),
        withheld=[key for key in settings if key not in asked],
        runs=[stripped.run(run) for run in runs],
    )


def is_plain(key: str, value: Any) -> bool:
    """Return whether the value of a dotted key contains no name that the user has chosen."""
    if isinstance(value, str):
        return _is_ours(key, value)
    if isinstance(value, list):
        return all(is_plain(key, inside) for inside in value)
    return value is None or isinstance(value, bool | int | float)


def _is_ours(key: str, text: str) -> bool:
    if key == "task":
        return is_ours(text)
    if key == "data.source":
        return _SOURCE.fullmatch(text) is not None
    if key == "train.weights":
        return text in WEIGHTS
    name = full_name(key)
    return name in CHECKED or (name is not None and text in choices(name))


class _Stripped:
    """Removes names from runs. Nodes and the user's own swept strings get numbers, equal in all runs."""

    def __init__(self, runs: Sequence[Run]) -> None:
        hosts = (
            host
            for run in runs
            for host in (*run.result.hosts, *(rank.host for rank in run.ranks))
        )
        self._hosts = {
            host: f"node{number}"
            for number, host in enumerate(dict.fromkeys(hosts), start=1)
        }
        texts: dict[str, dict[str, None]] = {}
        for key, value in (pair for run in runs for pair in run.result.swept.items()):
            if not is_plain(key, value):
                texts.setdefault(key, {})[json.dumps(value, sort_keys=True)] = None
        self._texts = {key: list(values) for key, values in texts.items()}
        self._names: Counter[str] = Counter()

    def run(self, run: Run) -> SharedRun:
        names = _metrics(run.result)
        return SharedRun(
            result=self._result(run.result, names),
            epochs=_columns(run, names),
            ranks=[self._rank(rank) for rank in run.ranks],
        )

    def _result(self, result: Outcome, names: Mapping[str, str]) -> Result:
        name = f"{result.strategy}-w{result.workers}-s{result.seed}"
        self._names[name] += 1
        count = self._names[name]
        return Result.model_validate(
            {field: getattr(result, field) for field in RESULT}
            | {
                "name": name if count == 1 else f"{name}-{count}",
                "swept": {
                    key: self._value(key, value) for key, value in result.swept.items()
                },
                "metric": names.get(result.metric, ""),
                "validation": {
                    new: result.validation[old]
                    for old, new in names.items()
                    if old in result.validation
                },
                "test": {
                    new: result.test[old]
                    for old, new in names.items()
                    if old in result.test
                },
                "hosts": [self._hosts[host] for host in result.hosts],
                "weights": result.weights
                if result.weights in (None, *WEIGHTS)
                else "a file",
                "flops_uncounted": ["an operation"] * bool(result.flops_uncounted),
                "weights_digest": "",
            }
        )

    def _rank(self, rank: RankRecord) -> RankRecord:
        return RankRecord.model_validate(
            {field: getattr(rank, field) for field in RANK}
            | {
                "host": self._hosts[rank.host],
                "pid": 0,
                "cpus": list(range(len(rank.cpus))),
                "versions": {
                    name: text
                    for name, text in rank.versions.items()
                    if _VERSION.fullmatch(text)
                },
                "build": _build(rank.build),
            }
        )

    def _value(self, key: str, value: Any) -> Any:
        if is_plain(key, value):
            return value
        return f"own {self._texts[key].index(json.dumps(value, sort_keys=True)) + 1}"


def _metrics(result: Outcome) -> dict[str, str]:
    """Map each shared metric to its shared name; "" for a quality with a name of the user's own."""
    of_classes = set()
    for name in result.validation:
        for key in class_keys(name, result.class_names):
            of_classes.add(key)
    names = dict.fromkeys(("loss", result.metric, *result.validation))
    ours = {}
    for name in names:
        if name not in of_classes and known(name).better:
            ours[name] = name
    return {result.metric: ""} | ours


def _columns(run: Run, names: Mapping[str, str]) -> dict[str, Any]:
    plain = {}
    for name in EpochRecord.model_fields:
        if name != "validation":
            plain[name] = epoch_values(run.epochs, name)
    metrics = {
        new: epoch_values(run.epochs, "validation", old) for old, new in names.items()
    }
    return _record(plain) | {"validation": _record(metrics)}


def _record(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    return {
        name: values
        for name, values in columns.items()
        if any(value is not None for value in values)
    }


def _build(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions and switches of a build; other strings are left out."""
    return {
        name: _build(value) if isinstance(value, Mapping) else value
        for name, value in record.items()
        if value is None
        or isinstance(value, bool | int | float | Mapping)
        or (isinstance(value, str) and _VERSION.fullmatch(value))
    }
