"""`scalestudy export`: the runs of a study for dashboards, written by the dashboards' own libraries."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from scalestudy.analysis.runs import Run
from scalestudy.util.errors import UserError

Dashboard = Literal["tensorboard", "mlflow"]
SUMMARY = ("throughput", "training_seconds", "wall_seconds", "quality")
"""Values of a whole run, by their names in `result.json`."""
Values = dict[str, float]


@dataclass(frozen=True)
class Exported:
    """A run as dashboards know it: settings, values by epoch with their Unix times, and those of the run."""

    name: str
    settings: dict[str, Any]
    epochs: tuple[tuple[int, float, Values], ...]
    summary: Values
    start: float
    end: float

    def values(self) -> Iterator[tuple[str, float, int, float]]:
        """Name, value, epoch and Unix time of each value; those of the whole run under the last epoch."""
        last = 0
        if self.epochs:
            last, _, _ = self.epochs[-1]
        of_run = (last, self.end, self.summary)
        for epoch, at, values in (*self.epochs, of_run):
            for name, value in values.items():
                yield name, value, epoch, at


def export_runs(
    runs: Sequence[Run],
    study: str,
    dashboard: Dashboard,
    target: str,
) -> tuple[int, str]:
    """Write runs for a dashboard, except those that an earlier export has written there.

    Args:
        runs: Finished runs.
        study: Name of the study, which MLflow calls an experiment.
        dashboard: Whose library writes them.
        target: Folder, or for MLflow also the address of a server, such as `https://mlflow.example.org`.

    Returns:
        How many were written, and the command that shows them.

    Raises:
        UserError: The dashboard's library is not installed.
    """
    writers: dict[Dashboard, Callable[[list[Exported], str, str], tuple[int, str]]] = {
        "tensorboard": _to_tensorboard,
        "mlflow": _to_mlflow,
    }
    written = [exported(run) for run in runs]
    try:
        return writers[dashboard](written, study, target)
    except ModuleNotFoundError as error:
        action = f"Install it: pip install 'scalestudy[{dashboard}]'"
        raise UserError(
            f"the library of {dashboard}",
            f"no module {error.name}",
            action,
        ) from error


def exported(run: Run) -> Exported:
    """The settings and values of a finished run."""
    result = run.result
    settings = {
        "strategy": result.strategy,
        "workers": result.workers,
        "seed": result.seed,
        "global_batch": result.global_batch,
    }
    # Of imported runs no time of day is known; dashboards then begin at the epoch of Unix.
    end = 0.0
    if result.finished:
        end = datetime.fromisoformat(result.finished).timestamp()
    start = end - (result.wall_seconds or 0.0)
    epochs = []
    for epoch in run.epochs:
        values = {"loss": epoch.loss, "learning_rate": epoch.learning_rate}
        for name, value in epoch.validation.items():
            values[f"validation/{name}"] = value
        at = start + (epoch.elapsed_training_seconds or 0.0)
        epochs.append((epoch.epoch, at, _finite(values)))
    summary = {}
    for name in SUMMARY:
        summary[f"run/{name}"] = getattr(result, name)
    return Exported(
        result.name,
        settings | result.swept,
        tuple(epochs),
        _finite(summary),
        start,
        end,
    )


def _finite(values: dict[str, float | None]) -> Values:
    # Charts of dashboards have no place for a loss that diverged.
    finite = {}
    for name, value in values.items():
        if value is not None and isfinite(value):
            finite[name] = value
    return finite


def _to_tensorboard(runs: list[Exported], study: str, target: str) -> tuple[int, str]:
    """Write a folder for each run, with its settings for the HPARAMS tab."""
    # TensorBoard's own switch: otherwise it loads TensorFlow to write files, which takes seconds.
    sys.modules.setdefault(
        "tensorboard.compat.notf",
        ModuleType("tensorboard.compat.notf"),
    )
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    new = [run for run in runs if not (Path(target) / run.name).exists()]
    for run in new:
        writer = EventFileWriter(str(Path(target) / run.name))
        settings = {}
        for name, value in run.settings.items():
            # The plugin takes no other types.
            if isinstance(value, bool | int | float | str):
                settings[name] = value
            else:
                settings[name] = str(value)
        settings_of_run = hparams_pb(
            settings,
            trial_id=run.name,
            start_time_secs=run.start,
        )
        writer.add_event(Event(wall_time=run.start, summary=settings_of_run))
        for name, value, epoch, at in run.values():
            event = Event(
                wall_time=at,
                step=epoch,
                summary=scalar_pb(name, value),
            )
            writer.add_event(event)
        writer.close()
    return len(new), f"tensorboard --logdir {target}"


def _to_mlflow(runs: list[Exported], study: str, target: str) -> tuple[int, str]:
    """Write the runs into the experiment of the study."""
    from mlflow.tracking import MlflowClient

    address = target
    files = None
    shown = f"see {target}"
    is_server = "://" in target
    if not is_server:
        place = Path(target).resolve()
        place.mkdir(parents=True, exist_ok=True)
        address = f"sqlite:///{place / 'mlflow.db'}"
        # By itself, MLflow would put them below the folder in which it was called.
        files = (place / "artifacts").as_uri()
        shown = f"mlflow ui --backend-store-uri {address}"
    client = MlflowClient(tracking_uri=address)
    experiment = client.get_experiment_by_name(study)
    if experiment:
        number = experiment.experiment_id
    else:
        number = client.create_experiment(study, files)
    new = []
    for run in runs:
        # A name is looked for by itself, since a server returns long lists in pages.
        named = f"attributes.run_name = '{run.name}'"
        if not client.search_runs([number], named, max_results=1):
            new.append(run)
    for run in new:
        # MLflow counts in milliseconds.
        started = client.create_run(
            number,
            start_time=round(1000 * run.start),
            run_name=run.name,
        )
        made = started.info.run_id
        for name, value in run.settings.items():
            client.log_param(made, name, value)
        for name, value, epoch, at in run.values():
            client.log_metric(made, name, value, timestamp=round(1000 * at), step=epoch)
        client.set_terminated(made, end_time=round(1000 * run.end))
    return len(new), shown
