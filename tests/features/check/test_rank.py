"""Three ranks of which one stalls: processes that sum nothing stand in for those that start a framework.

Real collectives that stall, for want of a way between two nodes, are those of slurm/test_check.py.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.engines.tensorflow.traits import TensorFlowTraits
from scalestudy.features.check import rank
from scalestudy.features.check.plan import Plan, read_report, write_plan
from scalestudy.features.check.report import TOPICS
from scalestudy.launch.local import reserve

SIZE = 3
STAND_IN = """
import json, os, pathlib, signal, sys, time
errand = json.loads(sys.argv[1])
events = pathlib.Path(errand["events"])
number, own = events.stem.split("-")

def tell(**event):
    with open(events, "a") as file:
        file.write(json.dumps(event) + "\\n")

name = errand["collective"]
if name is None:
    flags = {"gloo": True, "mpi": False, "nccl": False}
    built = {"tensorflow": "2", "cuda": None, "rocm": False, "gpus": 0, "horovod_error": None}
    tell(step="built", horovod=flags, seconds=0.0, **built)
    sys.exit()
meeting = events.parent / f"meeting-{number}"
meeting.mkdir(exist_ok=True)
if name == "auto" and own == "2":
    (events.parent / f"stalled-{number}").touch()
    os.kill(os.getpid(), signal.SIGSTOP)
(meeting / own).touch()
while len(list(meeting.iterdir())) < errand["placement"]["size"]:
    time.sleep(0.01)
tell(step="joined")
tell(step="summed")
for size in errand["sizes"]:
    tell(step="timed", bytes=size, seconds=1e-3)
tell(step="done")
sys.stdin.read()
"""


@pytest.fixture
def report(tmp_path, monkeypatch):
    """What three ranks report, of which rank 2 stalls in one collective."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(TensorFlowTraits, "trial_module", "stand_in")
    skip = tuple(topic for topic in TOPICS if topic not in ("collectives", "bandwidth"))
    folder = tmp_path / "check"
    write_plan(folder, Plan(workers=SIZE, sizes=(1024,), limit=3, needs=("auto",), skip=skip))
    with reserve.ports(SIZE + 2) as port, ThreadPoolExecutor(SIZE) as pool:
        hosts = ("localhost",) * SIZE
        ranks = [Placement(each, SIZE, each, SIZE, 0, hosts, "torchrun", port) for each in range(SIZE)]
        assert list(pool.map(lambda placement: rank.run(folder, placement), ranks)) == [0] * SIZE
    return read_report(folder)


@pytest.mark.slow
def test_the_pair_is_found_by_trials_of_parts_and_what_works_is_named(report, tmp_path):
    (line,) = [line for line in report.lines if line.topic == "collectives" and line.status != "pass"]
    assert line.status == "fail" and line.seen == "auto stalled at joining"
    assert line.where in (
        "localhost (rank 0) and localhost (rank 2)",
        "localhost (rank 1) and localhost (rank 2)",
    )
    assert 'communication = "ring"' in line.action
    assert {row.collective for row in report.bandwidth} == {"ring", "horovod-gloo"}
    stalls = list((tmp_path / "check" / "events").glob("stalled-*"))
    assert len(stalls) >= 2  # in the whole group, and again in the trials of parts
    mine = psutil.Process(os.getpid()).children(recursive=True)
    assert [each for each in mine if "stand_in" in each.cmdline()] == []
