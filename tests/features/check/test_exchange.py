"""A trial of a collective: its placement, its variables, and its end."""

import json
import os
import time

import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.features.check.exchange import Trial, among, errand, trial_environment
from scalestudy.hardware.devices import Gpu
from scalestudy.plugins.engines import collective

HOSTS = ("n1", "n1", "n2", "n2")


def placement(rank, source="slurm"):
    return Placement(rank, 4, rank % 2, 2, rank // 2, HOSTS, source, 20000)


def test_a_group_of_some_ranks_is_a_placement_of_its_own():
    found = among(placement(3), [1, 2, 3])
    assert (found.rank, found.size, found.local_rank, found.local_size, found.node_rank) == (2, 3, 1, 2, 1)
    assert found.hosts == ("n1", "n2", "n2") and found.port == 20000


def variables(name="ring", device="cpu", **changes):
    base = {"PATH": "/bin", "HTTPS_PROXY": "http://proxy", "TF_CONFIG": "stale"} | changes
    tried = None if name == "build" else collective(name)
    return trial_environment(tried, ENGINE, placement(3), base, device=device, local_rank=1)


def test_proxies_are_unset_and_tf_config_names_the_workers_where_it_is_used():
    environment = variables()
    assert "HTTPS_PROXY" not in environment and environment["PATH"] == "/bin"
    assert json.loads(environment["TF_CONFIG"])["cluster"]["worker"][2:] == ["n2:20000", "n2:20001"]
    assert "TF_CONFIG" not in variables("horovod-gloo")


@pytest.mark.parametrize(
    ("name", "device", "visible", "shown"),
    [
        ("ring", "gpu", "", "1"),
        ("ring", "gpu", "4,5", "5"),
        ("ring", "gpu", "GPU-x", "GPU-x"),
        ("build", "gpu", "0,1", "0,1"),  # the build is queried with all GPUs visible
        ("ring", "cpu", "0,1", "-1"),
    ],
)
def test_each_rank_takes_its_own_gpu(name, device, visible, shown):
    assert variables(name, device, CUDA_VISIBLE_DEVICES=visible)["CUDA_VISIBLE_DEVICES"] == shown


def test_each_rank_takes_its_own_gpu_by_uuid_where_it_is_known():
    gpus = [Gpu(4, "GPU-a", "H100"), Gpu(5, "GPU-b", "H100")]
    visible = {"CUDA_VISIBLE_DEVICES": "4,5"}
    environment = trial_environment(
        collective("nccl"), ENGINE, placement(3), visible, device="gpu", local_rank=1, gpus=gpus
    )
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-b"


def test_only_horovod_by_mpi_meets_as_mpirun_says(tmp_path):
    def source(name):
        what = errand(collective(name), placement(0, "openmpi"), device="cpu", sizes=(), events=tmp_path)
        return what["placement"]["source"]

    assert source("horovod-mpi") == "openmpi" and source("horovod-gloo") != "openmpi"


@pytest.fixture
def trial_of(tmp_path):
    """A trial of a test's own module, in a real process."""

    def start(program):
        (tmp_path / "acts.py").write_text(
            "import json, sys, time\n"
            "events = json.loads(sys.argv[1])['events']\n"
            "def tell(**event):\n"
            "    with open(events, 'a') as file: file.write(json.dumps(event) + '\\n')\n" + program
        )
        trial = Trial(
            "acts",
            {"events": str(tmp_path / "events.jsonl")},
            os.environ | {"PYTHONPATH": str(tmp_path)},
            tmp_path / "logs" / "it.log",
        )
        started.append(trial)
        return trial

    started = []
    yield start
    for trial in started:
        trial.end()


def test_one_that_is_done_stays_until_it_is_ended(trial_of):
    it = trial_of(
        "tell(step='joined'); tell(step='timed', bytes=4, seconds=2.0); tell(step='done')\nsys.stdin.read()"
    )
    answer = it.answer(0, 60)
    assert (answer.state, answer.seconds) == ("done", {4: 2.0})
    assert it._process.poll() is None
    it.end()
    assert it._process.poll() is not None


def test_one_that_breaks_leaves_its_last_words(trial_of):
    answer = trial_of("tell(step='joined'); sys.exit('no route to host')").answer(0, 60)
    assert (answer.state, answer.step, answer.tail[-1]) == ("failed", "the first sum", "no route to host")


class Clock:
    """A clock that advances by four seconds in each `sleep` only."""

    def __init__(self, meanwhile):
        self.now, self.meanwhile = 0.0, meanwhile

    def monotonic(self):
        return self.now

    def sleep(self, _):
        self.now += 4
        self.meanwhile()


def until_told(it, count):
    """Wait until a process has written `count` events, which it always does."""
    while len(it.events()) < count:
        assert it._process.poll() is None or len(it.events()) >= count
        time.sleep(0.01)


def test_one_that_says_nothing_is_ended(trial_of, monkeypatch):
    it = trial_of("tell(step='joined'); time.sleep(600)")
    until_told(it, 1)
    clock = Clock(meanwhile=lambda: None)
    monkeypatch.setattr("scalestudy.features.check.exchange.time", clock)
    answer = it.answer(0, 5)
    assert (answer.state, answer.step) == ("stalled", "the first sum")
    assert clock.now == 8 and it._process.poll() is not None


def test_one_that_goes_on_slowly_is_not(trial_of, monkeypatch):
    it = trial_of(
        "for k in range(4):\n"
        "    sys.stdin.readline(); tell(step='timed', bytes=k, seconds=1.0)\n"
        "tell(step='done'); sys.stdin.read()"
    )
    steps = iter((1, 2, 3, 5))  # the last one also ends it

    def go_on():
        it._process.stdin.write(b"on\n")
        it._process.stdin.flush()
        until_told(it, next(steps))

    clock = Clock(meanwhile=go_on)
    monkeypatch.setattr("scalestudy.features.check.exchange.time", clock)
    answer = it.answer(0, 5)
    assert answer.state == "done" and len(answer.seconds) == 4
    assert clock.now == 16  # far beyond the limit of silence
