"""No command runs what a shared folder's records name, whichever field names it.

Every field by which a record could decide what runs is filled, in turn, with something that leaves a mark if
it runs, and every command is called on the folder.
"""

import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import numpy as np
import pytest
from PIL import Image
from pydantic import BaseModel

from few_digits import few_digits
from model_records import record
from scalestudy.app.follow import Listener
from scalestudy.app.prepare import prepare_points, with_task_data
from scalestudy.config.file import Study
from scalestudy.config.parse import load_study
from scalestudy.config.point import Point
from scalestudy.launch.local import points_here
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.permission import RULES
from scalestudy.store.records import JobRecord
from scalestudy.store.study_folder import StudyFolder
from scalestudy.tasks.file import import_file
from synthetic_result import finish

STUDY = """
task = "cnn"
[data]
source = "{source}"
[train]
batch_size = 32
[launch]
device = "cpu"
[sweep]
strategy = ["mirrored"]
workers = [1, 2]
seed = 0
"""
STAND_IN = """#!{python}
import json, os, pathlib, sys
evil = pathlib.Path({evil!r})
told = list(sys.argv[1:])
for word in sys.argv[1:]:
    for file in (pathlib.Path(word), pathlib.Path(word) / "point.json"):
        if file.is_file():
            told.append(file.read_text())
if str(evil / "bin") in "".join(told) + os.environ["PATH"] or str(evil / "task.py") in "".join(told):
    (evil / "mark").touch()
(evil / "started").touch()
sys.exit(3)
"""


class Payload:
    """An object whose unpickling leaves the mark."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._mark),)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with study.toml and the results of two finished runs."""
    base = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(base / "cache"))
        patch.setattr("scalestudy.hardware.cores.granted", lambda: [0, 1])
        file = base / "study.toml"
        file.write_text(STUDY.format(source=few_digits(base, 200)))
        study, kind = with_task_data(load_study(file))
        points = prepare_points(points_here(study), kind, base, study, Listener())
        folder = StudyFolder.create_or_open(
            base / "shared", study, points, file.read_text()
        )
        for point in folder.points():
            run = folder.new_run(point)
            run.write_model_record(
                record("classes", class_names=[str(digit) for digit in range(10)])
            )
            finish(run)
            run.model.write_bytes(b"model")
            run.gallery.unlink(missing_ok=True)
        yield base


@pytest.fixture
def evil(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs and files that leave `mark` beside them when they run."""
    folder, programs = tmp_path / "evil", tmp_path / "evil" / "bin"
    programs.mkdir(parents=True)
    mark = folder / "mark"
    for file in (programs / "python", folder / "job.sh"):
        file.write_text(f"#!/bin/sh\ntouch {mark}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    (folder / "task.py").write_text(
        f"open({str(mark)!r}, 'w').close()\ndef read(data): raise SystemExit\n"
    )
    (folder / "site.toml").write_text(
        f'cpus_per_node = 4\nmodules = ["$(touch {mark})"]\n'
    )
    (folder / "split.json").write_bytes(pickle.dumps(Payload(mark)))
    prepared = folder / "prepared"
    shutil.copytree(next((template / "cache").rglob("meta.json")).parent, prepared)
    for array in prepared.glob("*.npy"):
        np.save(array, np.array([Payload(mark)], object), allow_pickle=True)
    # The user's own programs: a Python that only looks at what it is asked to run, and clients of a queue.
    own = tmp_path / "own"
    own.mkdir()
    (own / "python").write_text(
        STAND_IN.format(python=sys.executable, evil=str(folder))
    )
    (own / "ssh").write_text(f"#!/bin/sh\ntouch {mark}\n")
    for name in ("squeue", "sacct", "scontrol", "scancel", "sbatch"):
        (own / name).write_text("#!/bin/sh\nexit 0\n")
    for file in own.iterdir():
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", str(own / "python"))
    return folder


FIELDS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "task": lambda evil: {"task": str(evil / "task.py")},
    "sources": lambda evil: {
        "task": str(evil / "task.py"),
        "sources": {"task.py": "0" * 64},
    },
    "data.read": lambda evil: {"data.read": str(evil / "task.py")},
    "data.source": lambda evil: {
        "data.source": str(evil / "task.py"),
        "data.read": str(evil / "task.py"),
    },
    "data.cache": lambda evil: {"data.cache": str(evil)},
    "launch.environments": lambda evil: {
        "terms.launch.environments": {"tensorflow": str(evil)}
    },
    "launch.hosts": lambda evil: {
        "terms.launch.on": "hosts",
        "terms.launch.hosts": ["elsewhere"],
    },
    "launch.site": lambda evil: {
        "terms.launch.on": "slurm",
        "terms.launch.site": str(evil / "site.toml"),
    },
    "launch.on": lambda evil: {"terms.launch.on": str(evil / "task.py")},
    "engine": lambda evil: {"engine": str(evil / "task.py")},
    "strategy": lambda evil: {"strategy": str(evil / "task.py")},
    "terms.implementation": lambda evil: {
        "terms.implementation": str(evil / "task.py")
    },
    "train.weights": lambda evil: {"train.weights": str(evil / "split.json")},
    "files.prepared": lambda evil: {"files.prepared": str(evil / "prepared")},
    "files.split": lambda evil: {"files.split": str(evil / "split.json")},
    "files.initial": lambda evil: {"files.initial": str(evil / "split.json")},
    "job.queue": lambda evil: {"job": {"queue": str(evil / "job.sh")}},
    "job.script": lambda evil: {
        "job": {"queue": "slurm", "script": str(evil / "job.sh")}
    },
}
"""Keys of records by the field, with hostile values."""
COMMANDS = {
    "status": ("status", "S"),
    "status --verify": ("status", "S", "--verify"),
    "logs": ("logs", "S"),
    "cancel": ("cancel", "S"),
    "report": ("report", "S"),
    "report --share": ("report", "S", "--share", "OUT/shared.json"),
    "advise": ("advise", "S"),
    "compare": ("compare", "S", "S"),
    "proposal": ("proposal", "S", "--panel", "csc"),
    "diagnose": ("diagnose", "S", "--rounds", "1"),
    "model evaluate": ("model", "evaluate", "S"),
    "model evaluate --data": ("model", "evaluate", "S", "--data", "DATA"),
    "model predict": ("model", "predict", "S", "IMAGES", "--out", "OUT/predictions"),
    "model samples": ("model", "samples", "S", "--out", "OUT/samples.html"),
    "model export": ("model", "export", "S", "--out", "OUT/m.keras"),
    "run": ("run", "STUDY", "--out", "S"),
    "run, a point to run": ("run", "STUDY", "--out", "S"),
    "run --dry-run": ("run", "STUDY", "--out", "S", "--dry-run"),
    "submit": ("submit", "QUEUED", "--out", "S"),
    "recipe": ("recipe", "STUDY", "--out", "S"),
    "launch": ("launch", "--out", "S", "SCRIPT"),
}


def write_into(record: dict[str, Any], values: dict[str, Any]) -> None:
    for name, value in values.items():
        *path, last = name.split(".")
        inner = record
        for key in path:
            inner = inner[key]
        inner[last] = value


def altered(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


@pytest.fixture
def shared(tmp_path: Path, template: Path, evil: Path) -> Callable[[str], Path]:
    """Return shared(field): the results of a study, with that field of all of its records filled."""
    folder = tmp_path / "shared"
    shutil.copytree(template / "shared", folder)

    def make(field: str) -> Path:
        values = FIELDS[field](evil)
        job = values.pop("job", None)

        def study(content: dict[str, Any]) -> None:
            for point in content["points"]:
                write_into(point, values)
            ours = {
                name.removeprefix("terms."): value for name, value in values.items()
            }
            known = ("task", "data.", "launch.", "train.")
            write_into(
                content["study"], {n: v for n, v in ours.items() if n.startswith(known)}
            )

        def model(content: dict[str, Any]) -> None:
            known = {
                n: v
                for n, v in values.items()
                if n in ("task", "engine") or n[:5] in ("data.", "train")
            }
            content["data"], content["train"] = (
                content.get("data", {}),
                content.get("train", {}),
            )
            write_into(content, known)

        altered(folder / "study.json", study)
        for run in folder.glob("points/*/run-1"):
            altered(run / "point.json", lambda content: write_into(content, values))
            altered(run / "model.json", model)
            if job is not None:
                told = (
                    JobRecord(job="1", submitted=0.0, site="s", script="")
                    if "script" not in job
                    else None
                )
                base = (
                    {"job": "1", "submitted": 0.0, "site": "s", "script": ""}
                    if told is None
                    else {}
                )
                content = (told.model_dump() if told else base) | job
                (run / "job.json").write_text(json.dumps(content))
        return folder

    return make


@pytest.fixture
def call_on(
    call, evil, template, tmp_path, monkeypatch
) -> Callable[[str, Path], tuple[int, str, str]]:
    """Return call_on(command, folder): a command of `COMMANDS` on the results of a study."""
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "script.py").write_text("import torch\n")
    Image.new("L", (8, 8)).save(tmp_path / "image.png")
    queued = STUDY.format(source=template / "digits.npz").replace(
        "[launch]", '[launch]\non = "slurm"\nsite = "own.toml"'
    )
    (tmp_path / "own.toml").write_text("cpus_per_node = 4\n")
    (tmp_path / "queued.toml").write_text(queued)
    monkeypatch.setenv("XDG_CACHE_HOME", str(template / "cache"))
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: [0, 1])
    # What a report draws decides nothing, and takes longer than all else.
    monkeypatch.setattr("scalestudy.report.figure.Picture.svg", "<svg/>")
    monkeypatch.setattr("scalestudy.report.figure.Picture.png", b"")
    monkeypatch.setattr("scalestudy.report.figure.Picture.pdf", b"")
    monkeypatch.setattr("scalestudy.report.write_document._vega", lambda: "")
    monkeypatch.chdir(tmp_path)

    def run(command: str, folder: Path) -> tuple[int, str, str]:
        if command == "run, a point to run":
            shutil.rmtree(folder / "points" / "mirrored-w2-s0", ignore_errors=True)
        places = {
            "S": folder,
            "STUDY": template / "study.toml",
            "QUEUED": tmp_path / "queued.toml",
            "SCRIPT": tmp_path / "script.py",
            "DATA": "digits",
            "IMAGES": tmp_path / "image.png",
        }
        words = []
        for word in COMMANDS[command]:
            words.append(str(places.get(word, word)).replace("OUT", str(out)))
        return call(*words)

    return run


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("field", FIELDS)
def test_no_command_runs_what_a_record_names(
    call_on, shared, evil, field: str, command: str
) -> None:
    code, said, wrong = call_on(command, shared(field))
    assert not (evil / "mark").exists(), said + wrong
    assert code != 70, wrong
    assert "Traceback" not in wrong


@pytest.mark.parametrize(
    "command",
    [
        "run, a point to run",
        "diagnose",
        "model evaluate",
        "model evaluate --data",
        "model predict",
        "model samples",
        "model export",
    ],
)
def test_what_a_command_starts_is_looked_at(call_on, template, tmp_path, evil, command):
    folder = tmp_path / "shared"
    shutil.copytree(template / "shared", folder)
    call_on(command, folder)
    assert (evil / "started").exists()


def test_the_payloads_would_leave_their_mark(evil) -> None:
    mark = evil / "mark"
    attacks = {
        "an interpreter": lambda: subprocess.run([evil / "bin" / "python"], check=True),
        "a task": lambda: import_file(evil / "task.py"),
        "a job script": lambda: subprocess.run([evil / "job.sh"], check=True),
        "a host": lambda: subprocess.run(["ssh", "elsewhere"], check=True),
        "a split": lambda: pickle.loads((evil / "split.json").read_bytes()),
        "an array": lambda: np.load(
            next((evil / "prepared").glob("*.npy")), allow_pickle=True
        ),
        "a job": lambda: subprocess.run(
            [sys.executable, "-c", str(evil / "task.py")], check=False
        ),
        "workers": lambda: subprocess.run(
            [sys.executable], env={"PATH": f"{evil}/bin"}, check=False
        ),
    }
    for name, attack in attacks.items():
        attack()
        assert mark.exists(), name
        if mark.is_dir():
            mark.rmdir()
        else:
            mark.unlink()


BESIDE = {"model.keras", "model.pt", "checkpoint.npz"}
"""Files whose own tests are among those of their engines and of checkpoints."""


def test_every_rule_is_tried_and_explained() -> None:
    assert {*FIELDS} | BESIDE == {*RULES}
    page = (Path(__file__).parents[2] / "SECURITY.md").read_text()
    assert [field for field in RULES if f"`{field}`" not in page] == []


WORDS_ALONE = {
    "name", "title", "description", "study", "why", "swept", "also", "terms.oversubscribed", "quality_margin",
    "data.validation", "data.images", "data.masks", "data.colours", "data.group_pattern",
    "data.label_pattern", "data.file_column",
    "data.label_column", "data.fit", "train.batch", "train.loss", "train.metrics", "train.class_weights",
    "train.optimizer", "train.learning_rate_scaling", "train.schedule", "train.precision", "train.batch_norm",
    "train.augment", "train.input_scaling", "train.keep_best", "launch.device", "launch.communication",
    "launch.bucket_size", "launch.compression", "task_checksum", "kind", "dtype", "class_names", "weights",
    "job.job", "job.submission", "job.site", "job.cluster",
}  # fmt: skip
"""Fields with text that names no code: numbers in words, names of columns, patterns of file names."""


def texts(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of the fields that may hold text."""
    for name, field in model.model_fields.items():
        inner = list(leaf_types(field.annotation))
        for kind in inner:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from texts(kind, f"{prefix}{name}.")
        if str in inner or Any in inner:
            yield f"{prefix}{name}"


def leaf_types(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is None:
        yield annotation
        return
    for part in get_args(annotation):
        yield type(part) if isinstance(part, str | int) else part
        if get_origin(part) is not None:
            yield from leaf_types(part)


@pytest.mark.parametrize(
    ("model", "prefix"),
    [(Point, ""), (ModelRecord, ""), (JobRecord, "job."), (Study, "")],
)
def test_every_field_of_a_record_that_holds_text_is_known_to_decide_what_runs_or_not(
    model, prefix
) -> None:
    found = {
        name.removeprefix("terms.") if name.startswith("terms.launch") else name
        for name in texts(model, prefix)
    }
    unknown = {
        name for name in found if not name.startswith(("sweep", "place", "defaults"))
    }
    assert unknown - {*RULES} - WORDS_ALONE - {"data", "train"} == set()
