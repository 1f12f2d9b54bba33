"""Workers in a container on several nodes. Apptainer is not in Debian; other tests cover its command line."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clusters import CACHE, PROJECT
from studies import log, result, write_site, write_study

RECIPE = PROJECT / "environments" / "charliecloud.sh"

# The image has no Slurm; in a job, the task checks that Slurm's commands are missing.
TASK = """
import os
import shutil

from scalestudy.tasks.cnn import cnn

loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]


def model(data):
    if "SLURM_JOB_ID" in os.environ:
        assert shutil.which("sbatch") is None, "this is not the container"
    return cnn(data.input_shape, data.classes)
"""


@pytest.fixture(scope="session")
def binds():
    """Folders that the image lacks: the virtual environment, its Python and the project."""
    folders = {str(PROJECT), sys.prefix, *(() if sys.base_prefix == "/usr" else (sys.base_prefix,))}
    return sorted(path for path in folders if not any(path.startswith(f"{other}/") for other in folders))


@pytest.fixture(scope="session")
def image(binds) -> Path:
    """A Debian with Python, made by the project's script and kept in the user's cache for all sessions."""
    for command in ("ch-run", "debootstrap"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed (`make test-tools`)")
    image = CACHE / f"charliecloud-{hashlib.sha256(RECIPE.read_bytes()).hexdigest()[:12]}"
    if not image.exists():
        made = subprocess.run(
            [RECIPE, "--bare", image],
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if made.returncode and "http" in made.stdout:
            pytest.skip(f"Debian's archive is not reached: {made.stdout.strip().splitlines()[-1]}")
        assert made.returncode == 0, made.stdout
    for folder in binds:  # mount points, which differ between sessions
        image.joinpath(*Path(folder).parts[1:]).mkdir(parents=True, exist_ok=True)
    return image


def test_a_study_runs_in_charliecloud_on_two_nodes(cluster, image, binds):
    folder = cluster.folder("container")
    container = {"image": str(image), "runtime": "charliecloud", "binds": binds, "python": sys.executable}
    write_site(folder, tasks_per_node=1, container=container)
    (folder / "contained.py").write_text(TASK)
    study = write_study(cluster, folder, task="contained.py", strategy=["native", "horovod"], workers=[2])
    cluster.scalestudy("run", study, "--no-report")
    for point in ("native-w2-s0", "horovod-w2-s0"):
        assert result(study, point)["workers"] == 2, log(study, point)
