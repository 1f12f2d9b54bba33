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
    "engine",
    "strategy",
    "implementation",
    "communication",
    "workers",
    "seed",
    "per_worker_batch",
    "global_batch",
    "epochs",
    "updates",
    "samples_processed",
    "training_samples",
    "throughput",
    "steady_epochs",
    "training_seconds",
    "wall_seconds",
    "restarts",
    "phases",
    "better",
    "bounded",
    "quality",
    "quality_split",
    "quality_labels",
    "constant_quality",
    "best_quality",
    "best_epoch",
    "parameters",
    "shapes_digest",
    "initial_digest",
    "precision",
    "evaluated_samples",
    "input_scaling",
    "deterministic",
    "oversubscribed",
    "peak_memory_bytes",
    "cpu_percent",
    "gpu_percent",
    "gpus",
    "processes",
    "nodes",
    "usage_of",
    "flops_per_sample",
    "began",
    "finished",
    "by_script",
    "place",
    "blocks",
)
"""Fields of a result that hold numbers, digests, or words from our own lists."""
RANK = (
    "rank",
    "size",
    "local_rank",
    "placement_source",
    "threads",
    "devices",
    "nodes_shared",
    "driver",
    "cpu_model",
    "memory_bytes",
)
"""The same for the record of a rank."""
CHECKED = ("train.loss", "train.metrics", "train.augment", "launch.bucket_size")
"""Keys whose strings are validated when they are read, so they hold only our own words."""
WEIGHTS = ("imagenet", "none")
_SOURCE = re.compile(r"digits|indents(:\d+)?")
_VERSION = re.compile(r"[\w.+!-]{1,60}")


def share_study(
    folder: StudyFolder,
    runs: Sequence[Run],
    overview: Overview,
) -> SharedStudy:
    """Return a study without names.

    Raises:
        UserError: No run has finished.
    """
    if not runs:
        action = f"Run it first; `scalestudy status {folder.path}` shows how far it is."
        raise UserError(
            "a study with a finished run",
            f"{folder.path}, which has none",
            action,
        )
    asked = {}
    withheld = []
    for key, value in settings_of(folder.study).items():
        if is_plain(key, value):
            asked[key] = value
        else:
            withheld.append(key)
    margin = None
    if folder.study.quality_margin:
        margin = folder.study.quality_margin.key
    states = Counter([status.state for status in overview.points])
    # Of all runs before the first is written: a host or a text has one number in each of them.
    stripped = _Stripped(runs)
    return SharedStudy(
        scalestudy_share=1,
        about=ABOUT,
        study=str(asked.get("task", OWN_TASK)),
        bill=billing_unit(folder) or "worker",
        margin=margin,
        asked=asked,
        points=dict(states),
        withheld=withheld,
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
    # Of all other keys only words of our own lists: a text may be a path, a pattern or a name of the user's.
    name = full_name(key)
    if name in CHECKED:
        return True
    return name is not None and text in choices(name)


class _Stripped:
    """Removes names from runs. Nodes and the user's own swept strings get numbers, equal in all runs."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._hosts: dict[str, str] = {}
        self._texts: dict[str, list[str]] = {}
        self._names: Counter[str] = Counter()
        for run in runs:
            hosts_of_ranks = [rank.host for rank in run.ranks]
            for host in (*run.result.hosts, *hosts_of_ranks):
                self._hosts.setdefault(host, f"node{len(self._hosts) + 1}")
            for key, value in run.result.swept.items():
                if is_plain(key, value):
                    continue
                text = _as_text(value)
                texts = self._texts.setdefault(key, [])
                if text not in texts:
                    texts.append(text)

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
        # Runs that differ only in other swept values would share the name.
        if self._names[name] > 1:
            name = f"{name}-{self._names[name]}"
        # A path of the user's own is only said to be one.
        weights = result.weights
        if weights not in (None, *WEIGHTS):
            weights = "a file"
        # Operations may have names of the user's own: only whether there are any is kept.
        uncounted = []
        if result.flops_uncounted:
            uncounted.append("an operation")
        swept = {}
        for key, value in result.swept.items():
            swept[key] = self._value(key, value)
        # Fields by their names, so that a field that a later version adds is left out until someone has judged it.
        fields = {field: getattr(result, field) for field in RESULT}
        fields |= {
            "name": name,
            "swept": swept,
            "metric": names.get(result.metric, ""),
            "validation": _renamed(result.validation, names),
            "test": _renamed(result.test, names),
            "hosts": [self._hosts[host] for host in result.hosts],
            "weights": weights,
            "flops_uncounted": uncounted,
            "weights_digest": "",
        }
        return Result.model_validate(fields)

    def _rank(self, rank: RankRecord) -> RankRecord:
        fields = {field: getattr(rank, field) for field in RANK}
        fields |= {
            "host": self._hosts[rank.host],
            # Ids of processes are left out, but a record needs one.
            "pid": 0,
            # How many cores, not which.
            "cpus": list(range(len(rank.cpus))),
            "versions": _plain_entries(rank.versions),
            "build": _plain_entries(rank.build),
        }
        return RankRecord.model_validate(fields)

    def _value(self, key: str, value: Any) -> Any:
        if is_plain(key, value):
            return value
        number = self._texts[key].index(_as_text(value)) + 1
        return f"own {number}"


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The values that have a shared name, by that name."""
    found = {}
    for old, new in names.items():
        if old in values:
            found[new] = values[old]
    return found


def _metrics(result: Outcome) -> dict[str, str]:
    """Map each shared metric to its shared name; "" for a quality with a name of the user's own."""
    # Qualities by class are named by the classes.
    of_classes: set[str] = set()
    for name in result.validation:
        of_classes.update(class_keys(name, result.class_names))
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
    metrics = {}
    for old, new in names.items():
        metrics[new] = epoch_values(run.epochs, "validation", old)
    return _record(plain) | {"validation": _record(metrics)}


def _record(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    known_columns = {}
    for name, values in columns.items():
        if any(value is not None for value in values):
            known_columns[name] = values
    return known_columns


def _plain_entries(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions, numbers and switches of a record; other strings are left out."""
    kept: dict[str, Any] = {}
    for name, value in record.items():
        is_number = isinstance(value, bool | int | float)
        is_version = isinstance(value, str) and _VERSION.fullmatch(value)
        if isinstance(value, Mapping):
            kept[name] = _plain_entries(value)
        elif value is None or is_number or is_version:
            kept[name] = value
    return kept
