"""`report --share` removes names and keeps numbers unchanged."""

import functools
import json
import math

import pytest

import synthetic
from scalestudy.analysis.findings import read_study
from scalestudy.analysis.shared import read_shared
from scalestudy.config.keys import SECTIONS
from scalestudy.features.share import CHECKED, is_plain
from scalestudy.store.study_folder import StudyFolder

SECRETS = (
    "acme",
    "jdoe",
    "secret",
    "orchard",
    "GPU-1f2e",
    "918273",
    "bruise",
    "mildew",
    "cidered",
    "ember",
)
"""Parts of all paths, hosts, users, studies, tasks, classes, metrics, sources, UUIDs, jobs and variables."""


def named_runs(metric="iou", swept=None):
    """Three seeds on one and two workers, with a name in every field of their results that can hold one."""
    runs = []
    for made in synthetic.seeded(
        (1, 2), ("horovod",), swept=swept or {"train.batch_size": 8}
    ):
        found = {
            "loss": 0.2,
            metric: made.result.quality,
            f"{metric}_bruise": 0.5,
            f"{metric}_mildew": 0.6,
        }
        result = made.result.model_copy(
            update={
                "metric": metric,
                "validation": found,
                "test": {f"{metric}_bruise": 0.4},
                "class_names": ["bruise", "mildew"],
                "hosts": ["acme-n07.hpc", "acme-n08.hpc"],
                "weights": "/home/jdoe/ember.h5",
                "model_missing": "/scratch/jdoe is full",
                "flops_uncounted": ["secret_layer/dot"],
                "weights_digest": "secret",
            }
        )
        epochs = []
        for epoch in made.epochs:
            loss, quality = epoch.validation["loss"], epoch.validation["iou"]
            validation = {"loss": loss, metric: quality, "iou_bruise": 0.5}
            epochs.append(epoch.model_copy(update={"validation": validation}))
        runs.append(type(made)(result, tuple(epochs), made.folder))
    return runs


BUILD = {"torch": {"cuda_version": "12.8"}}


def write(path, runs, build=BUILD):
    """Write the study's folder, with names in the records of its ranks."""
    folder = synthetic.write(path, "orchard", runs)
    for point in folder.points():
        (run,) = folder.runs(point.name)
        for number in range(point.workers):
            rank = synthetic.rank(point.workers).model_copy(
                update={
                    "rank": number,
                    "host": f"acme-n0{7 + number}.hpc",
                    "pid": 918273,
                    "devices": ["NVIDIA H200"],
                    "device_uuids": ["GPU-1f2e"],
                    "driver": "570.1",
                    "kernel": "6.1.0-acme",
                    "environment_name": "/home/jdoe/venv",
                    "environment_id": "secret",
                    "environment": {
                        "SLURM_JOB_ID": "918273",
                        "CUDA_CACHE_PATH": "/home/jdoe",
                    },
                    "unmeasured": {"gpu_joules": "/sys of acme"},
                    "build": build,
                }
            )
            run.write_rank(rank)
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("jdoe") / "orchard"
    return write(path, named_runs())


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A study of a user's own task, source and metric, with a swept text."""
    path = tmp_path_factory.mktemp("jdoe") / "orchard-own"
    runs = [
        run
        for fold in ("/data/acme/a", "/data/acme/b")
        for run in named_runs("cidered", {"data.source": fold})
    ]
    unique = [
        type(run)(
            run.result.model_copy(update={"name": f"p{place}", "better": "higher"}),
            run.epochs,
            run.folder,
        )
        for place, run in enumerate(runs)
    ]
    write(
        path,
        unique,
        {
            "torch": {"cuda_version": "12.8", "prefix": "/opt/acme/torch"},
            "by": ["jdoe"],
        },
    )
    record = json.loads((path / "study.json").read_text())
    record["study"]["task"] = "/home/jdoe/secret_task.py"
    record["study"]["data"] |= {
        "source": "/data/acme/a",
        "read": "/home/jdoe/secret.py",
        "cache": "/scratch/jdoe",
        "colours": {"bruise": "#ff0000", "mildew": "#00ff00"},
        "group_pattern": "^(bruise|mildew)",
    }
    record["study"]["launch"] |= {
        "site": "acme.toml",
        "environments": {"tensorflow": "/home/jdoe/venv"},
    }
    (path / "study.json").write_text(json.dumps(record))
    return StudyFolder.open(path)


@pytest.fixture
def share(call, tmp_path):
    """Write the shared file of a study, and return its path."""

    def write(folder):
        file = tmp_path / "theirs.json"
        code, text, _ = call("report", folder.path, "--share", file)
        assert code == 0 and f"Wrote {file}" in text
        return file

    return write


@pytest.fixture
def shared(share, study):
    return share(study)


@pytest.fixture
def own_shared(share, own):
    return share(own)


@pytest.mark.parametrize(("name", "missing"), [("study", ["cidered"]), ("own", [])])
def test_no_name_is_in_the_file(name, missing, share, request):
    folder = request.getfixturevalue(name)
    everything = "".join(path.read_text() for path in folder.path.rglob("*.json*"))
    assert [secret for secret in SECRETS if secret not in everything] == missing
    text = share(folder).read_text()
    assert [secret for secret in (*SECRETS, str(folder.path)) if secret in text] == []


def test_a_study_differs_in_nothing_from_its_shared_file(call, study, shared):
    compared = json.loads(call("compare", study.path, shared, "--format", "json")[1])
    assert compared["asked"] == []
    changes = {
        (row["strategy"], row["workers"], row["quantity"]): row["change"]
        for row in compared["rows"]
    }
    assert changes == {
        ("horovod", workers, quantity): 0.0 if quantity == "quality" else 1.0
        for workers in (1, 2)
        for quantity in ("rate", "training_seconds", "quality")
    }
    assert all(row["reference_value"] == row["other_value"] for row in compared["rows"])
    assert all(
        row["paired"] for row in compared["rows"] if row["quantity"] == "quality"
    )
    markdown = call("compare", study.path, shared, "--format", "markdown")[1]
    assert "Other differences" not in markdown and "Not compared" not in markdown


def test_what_is_kept_is_what_was_measured(study, shared):
    kept = json.loads(shared.read_text())
    findings = read_study(study)
    assert kept["study"] == kept["asked"]["task"] == "unet"
    assert kept["asked"]["data.source"] == "indents"
    assert kept["withheld"] == []
    assert kept["points"] == {"done": 6}
    for run, ours in zip(kept["runs"], findings.runs, strict=True):
        result = ours.result
        times = ("training_seconds", "wall_seconds", "quality")
        for name in ("strategy", "workers", "seed", "global_batch", *times):
            assert run["result"][name] == getattr(result, name)
        assert run["result"]["swept"] == {"train.batch_size": 8}
        assert run["result"]["hosts"] == ["node1", "node2"]
        assert run["epochs"]["train_seconds"] == [
            epoch.train_seconds for epoch in ours.epochs
        ]
        assert run["epochs"]["validation"]["iou"] == [
            epoch.validation["iou"] for epoch in ours.epochs
        ]
        assert [rank["host"] for rank in run["ranks"]] == ["node1", "node2"][
            : result.workers
        ]
        first = run["ranks"][0]
        assert first["devices"] == ["NVIDIA H200"] and first["driver"] == "570.1"
        assert first["versions"] == ours.ranks[0].versions
        assert first["build"] == BUILD


def test_of_a_study_of_ones_own_numbers_are_kept(call, own, own_shared):
    kept = json.loads(own_shared.read_text())
    assert kept["study"] == "own task"
    assert {
        "task",
        "data.source",
        "data.read",
        "data.colours",
        "data.group_pattern",
        "launch.site",
    } <= {*kept["withheld"]}
    assert kept["asked"]["train.batch_size"] == 32
    results = [run["result"] for run in kept["runs"]]
    assert [result["swept"]["data.source"] for result in results] == ["own 1"] * 6 + [
        "own 2"
    ] * 6
    qualities = [run.result.quality for run in read_study(own).runs]
    assert [result["quality"] for result in results] == qualities
    assert all(rank["build"] == BUILD for run in kept["runs"] for rank in run["ranks"])
    # The quality's name is the user's own; its values are not.
    assert {result["metric"] for result in results} == {""}
    assert [
        run["epochs"]["validation"][""][-1] for run in kept["runs"]
    ] == pytest.approx(
        [run.epochs[-1].validation["cidered"] for run in read_study(own).runs]
    )


def test_qualities_of_unnamed_data_are_not_paired(call, own, own_shared, tmp_path):
    compared = json.loads(call("compare", own.path, own_shared, "--format", "json")[1])
    assert compared["asked"] == []
    code, text, _ = call("compare", own.path, own_shared, "--format", "markdown")
    assert code == 0 and "not known of both are" in text


def test_a_diverged_run_is_shared(share, tmp_path):
    made = synthetic.run("horovod", 1, 0, quality=float("nan"))
    epochs = tuple(
        epoch.model_copy(update={"loss": float("inf")}) for epoch in made.epochs
    )
    folder = synthetic.write(
        tmp_path / "made", "made", [type(made)(made.result, epochs, made.folder)]
    )
    (run,) = read_shared(share(folder)).findings().runs
    assert run.result.quality is not None and math.isnan(run.result.quality)
    assert [epoch.loss for epoch in run.epochs] == [math.inf] * len(epochs)


def test_a_changed_file_is_told_from_the_study(call, study, shared, tmp_path):
    """The comparison above can fail."""
    document = json.loads(shared.read_text())
    document["asked"]["train.epochs"] = 999
    for run in document["runs"]:
        run["result"]["throughput"] *= 0.5
        run["ranks"][0]["cpu_model"] = "Another CPU"
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document))
    compared = json.loads(call("compare", study.path, changed, "--format", "json")[1])
    assert [row["key"] for row in compared["asked"]] == ["train.epochs"]
    rates = [row["change"] for row in compared["rows"] if row["quantity"] == "rate"]
    assert rates == pytest.approx([0.5, 0.5])
    assert (
        "Another CPU" in call("compare", study.path, changed, "--format", "markdown")[1]
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"scalestudy_share": 1}',
        '{"scalestudy_share": 2}',
        '{"scalestudy_share": 1, "runs": [',
    ],
)
def test_a_damaged_file_is_refused(call, tmp_path, text):
    file = tmp_path / "theirs.json"
    file.write_text(text)
    for arguments in (["report", file], ["compare", file, file]):
        code, _, errors = call(*arguments)
        assert code == 2 and "theirs.json" in errors


def test_nothing_is_shared_that_is_not_asked_for(call, study, shared, tmp_path):
    folder = synthetic.write(tmp_path / "none", "none", [], synthetic.unfinished())
    out = tmp_path / "out.json"
    assert call("report", folder.path, "--share", out)[0] == 2
    assert call("report", study.path, "--share", out, "--format", "csv")[0] == 2
    assert call("report", study.path, "--share", study.path / "study.json")[0] == 2
    assert call("report", shared, "--from", shared)[0] == 2
    assert not out.exists()


def test_a_text_of_any_other_key_is_left_out():
    """Of all text values of a study file, only our own words are shared."""
    for section, model in SECTIONS.items():
        for key in model.model_fields:
            assert is_plain(f"{section}.{key}", "acme") is (
                f"{section}.{key}" in CHECKED
            )
    assert is_plain("train.optimizer", "adam") and is_plain("data.source", "indents:40")
    assert not is_plain("data.source", "acme:set") and not is_plain(
        "arguments", "--user jdoe"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("runs", 0, "result", "strategy"), "mir\x07rored"),
        (("runs", 0, "result", "finished"), "yesterday"),
        (("runs", 0, "epochs", "loss"), [0.5]),
        (("runs", 0, "epochs", "loss"), 0.5),
        (("runs", 0, "epochs", "validation"), "iou"),
        (("runs", 0, "epochs", "validation"), {"iou": [0.1]}),
        (("runs", 0, "epochs", "steps"), ["many"]),
        (("margin",), "zz"),
        (("margin",), float("nan")),
    ],
)
def test_a_file_that_analysis_could_not_read_is_refused_when_it_is_opened(
    call, shared, key, value
):
    changed = json.loads(shared.read_text())
    *above, last = key
    functools.reduce(lambda part, inner: part[inner], above, changed)[last] = value
    shared.write_text(json.dumps(changed))
    for command in (("report", shared), ("compare", shared, shared)):
        code, _, errors = call(*command)
        assert code == 2 and f"{shared}: " in errors
        assert ".".join(map(str, key[-2:])) in errors
