"""A whole study through Slurm on real images, compared with the same points on this machine."""

import importlib.util
import json
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from studies import (
    SMALL_UNET,
    epochs,
    newest_run,
    result,
    rows,
    write_site,
    write_study,
)

NUCLEI = Path(__file__).parents[3] / "shared" / "data" / "nuclei"
IMAGES = {"image_size": [32, 32], "validation": 0.2}
TORCH = ["ddp"] if importlib.util.find_spec("torch") else []


@pytest.fixture(scope="module")
def images():
    """Real micrographs if available, otherwise synthetic ones."""
    return IMAGES | {"source": str(NUCLEI) if NUCLEI.is_dir() else "indents:320"}


@pytest.fixture(scope="module")
def study(cluster, images):
    """Native and Horovod with one and two workers on one node, and with two workers each on two nodes."""
    folder = cluster.folder("whole-study")
    write_site(folder)
    (folder / "small.py").write_text(SMALL_UNET)
    study = write_study(
        cluster,
        folder,
        task="small.py",
        data=images,
        batch_size=8,
        strategy=["native", "horovod"],
        workers=[1, 2, 4],
    )
    cluster.scalestudy("run", study, "--no-report")
    return study


def test_native_is_what_suits_the_nodes(cluster, study):
    assert set(rows(cluster, study)) == {
        ("single", 1),
        ("mirrored", 2),
        ("multiworker", 4),
        ("horovod", 1),
        ("horovod", 2),
        ("horovod", 4),
    }


def test_its_report_equals_one_of_local_runs_in_all_but_time(cluster, study, images):
    here = {}
    for name, strategies, workers in (
        ("one-node", ["native", "horovod"], [1, 2]),
        ("two-nodes", ["horovod"], [4]),
    ):
        local = write_study(
            cluster,
            study.parent,
            name=name,
            on="local",
            task="small.py",
            data=images,
            batch_size=8,
            strategy=strategies,
            workers=workers,
        )
        cluster.run_here(local)
        here |= rows(cluster, local)
    there = rows(cluster, study)
    assert there.keys() == here.keys() | {("multiworker", 4)}
    for point in here:
        # Studied alone, a point of four workers has no baseline, so what compares it with one differs.
        ratio = ("samples_ratio", "samples_ratio_low", "samples_ratio_high")
        ignored = {"strategy", "quality_note", *ratio} if point[1] == 4 else set()
        assert {
            key: value for key, value in there[point].items() if key not in ignored
        } == {key: value for key, value in here[point].items() if key not in ignored}


def test_one_worker_a_node_on_four_nodes_in_the_environment_of_its_engine(cluster):
    """`test_launchers` shows Horovod on fourteen nodes. PyTorch stays in the submitting environment."""
    folder = cluster.folder("four-nodes")
    write_site(folder, tasks_per_node=1)
    venv.create(folder / "other", with_pip=False)
    packages = next(folder.glob("other/lib/python*/site-packages"))
    (packages / "seen.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    study = write_study(cluster, folder, strategy=["native", *TORCH], workers=[4])
    text = study.read_text().replace(
        "[launch]", '[launch]\nenvironments = { tensorflow = "other" }'
    )
    study.write_text(text)
    cluster.scalestudy("run", study, "--no-report")
    found = result(study, "native-w4-s0")
    assert found["implementation"] == "multiworker"
    assert found["samples_processed"] == 2 * found["training_samples"]
    assert environments_of(study, "native-w4-s0") == {str(folder / "other")}
    for point in [f"{strategy}-w4-s0" for strategy in TORCH]:
        assert result(study, point)["hosts"] == found["hosts"] == cluster.nodes
        assert environments_of(study, point) == {sys.prefix}
        losses = [record["loss"] for record in epochs(study, "native-w4-s0")]
        assert [record["loss"] for record in epochs(study, point)] == pytest.approx(
            losses, rel=1e-5
        )


def environments_of(study: Path, point: str) -> set[str]:
    """Return the environments in which the ranks of a run found their packages."""
    lines = (newest_run(study, point) / "ranks.jsonl").read_text().splitlines()
    assert len(lines) == 4
    return {json.loads(line)["environment_name"] for line in lines}
