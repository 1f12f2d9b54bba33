"""Which rank of a job failed first, and why: real start, log and end of workers, with a planted task."""

import json
import sys
from pathlib import Path

import pytest

from paths import SUPPORT
from studies import newest_run, results_of, write_site, write_study

STAND_IN = SUPPORT / "stand_in.py"
ENDS = {
    "native-w2-s0": "import os\nos.kill(os.getpid(), 9)",
    "native-w2-s1": "import sys\nsys.exit(0)",
    "native-w2-s2": "def build():\n    raise KeyError('mask')\nbuild()",
    "native-w2-s3": "import ctypes\nctypes.string_at(0)",
}
"""The code of rank 1 by point, while rank 0 waits on another node."""


@pytest.fixture(scope="module")
def study(cluster) -> Path:
    """Four short jobs that have ended."""
    folder = cluster.folder("causes")
    write_site(folder, tasks_per_node=1, wrapper=[sys.executable, str(STAND_IN)])
    study = write_study(cluster, folder, workers=[2], seed=[0, 1, 2, 3])
    (folder / "studies").mkdir()
    plans = {point: {"python": text, "rank": 1} for point, text in ENDS.items()}
    (folder / "studies" / "plan.json").write_text(json.dumps(plans))
    done = cluster.scalestudy("run", study, "--no-report", check=False)
    assert done.returncode == 1, done.stdout
    (folder / "run.txt").write_text(done.stdout)
    return study


@pytest.mark.parametrize(
    ("point", "said"),
    [
        (
            "native-w2-s0",
            "rank 1 was ended by SIGKILL on {node}, but not by the kernel for lack of memory: "
            "a person or a program sent it",
        ),
        (
            "native-w2-s1",
            "rank 1 ended with exit code 0 on {node}: "
            "the task's file ended the program by sys.exit(0) (task.py, line 2)",
        ),
        (
            "native-w2-s2",
            "rank 1 ended with exit code 1 on {node}: KeyError: 'mask' (task.py, line 2, in build)",
        ),
        ("native-w2-s3", "rank 1 was ended by SIGSEGV on {node} (task.py, line 2)"),
    ],
)
def test_the_rank_that_ended_first_is_named_with_its_own_end(
    cluster, study, point, said
):
    causes = newest_run(study, point) / "causes"
    node = json.loads((causes / "1.json").read_text())["host"]
    assert node in cluster.nodes
    failure = json.loads((newest_run(study, point) / "failure.json").read_text())
    assert failure["reason"] == said.format(node=node)
    assert failure["rank"] == 1 and failure["job_state"] == "FAILED"


def test_run_and_status_say_the_same(cluster, study):
    reasons = [
        json.loads((newest_run(study, point) / "failure.json").read_text())["reason"]
        for point in ENDS
    ]
    ran = " ".join((study.parent / "run.txt").read_text().split())
    told = json.loads(
        cluster.run_quietly("status", results_of(study), "--format", "json")
    )
    assert all(reason in ran for reason in reasons)
    assert [each["reason"] for each in told["points"]] == reasons
