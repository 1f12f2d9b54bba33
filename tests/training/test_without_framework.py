"""The interface of engines: a run needs no framework except its engine's, as an engine in NumPy shows."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from data_settings import data_of
from fake_nvml import GPU_IS_LOST, cards
from linear import ALONE, Linear
from made_points import made_point
from paths import SUPPORT
from scalestudy.config.point import Point
from scalestudy.config.settings import ResolvedLaunch
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.engines.group import Group, Joined, Replicas, join
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.watchdog import EXIT_CODE
from scalestudy.store.records import Stopped
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.training.agreement import CallbackDecisions
from scalestudy.training.device_setup import OwnPart
from scalestudy.training.rank_run import run_synchronous
from scalestudy.training.session import Session


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """60 images of three classes, each brighter in another row, and their split."""
    folder = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = random.integers(0, 160, (60, 3, 4)).astype("uint8")
    x[np.arange(60), y] += 60
    np.savez(folder / "rows.npz", x_train=x, y_train=y)
    prepared = prepare(data_of(str(folder / "rows.npz"), cache=folder))
    return prepared, ensure_split(prepared, 0.3, 0)


def point_of(data, **train) -> Point:
    prepared, split = data
    settings = {
        "epochs": 6,
        "batch": "global",
        "optimizer": "momentum",
        "schedule": "linear",
        "steps_per_call": 2,
        **train,
    }
    point = made_point(train=settings, data={"source": "rows.npz"}, place=4)
    return point.with_files(str(prepared.path), str(split.path))


def labels_of(data) -> np.ndarray:
    prepared, split = data
    return prepared.targets[split.validation]


def folder_of(path: Path, point: Point) -> RunFolder:
    folder = path / "run-1"
    folder.mkdir(parents=True)
    write_point(folder / "point.json", point)
    return RunFolder(folder)


def computed(folder: RunFolder) -> str:
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "linear.py"), str(folder.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_run_is_trained_left_and_ended_where_no_framework_can_be_imported(
    data, tmp_path
):
    whole, left = (
        folder_of(tmp_path / "whole", point_of(data)),
        folder_of(tmp_path / "left", point_of(data)),
    )
    assert "LOADED []" in computed(whole)
    asked = left.path.parent / "stop"
    asked.touch()
    assert "stopped on request in epoch 1 after step 2" in computed(left)
    assert left.result() is None
    assert left.stopped() == Stopped(epoch=1, step=2)
    asked.unlink()
    left.forget_stop()
    assert "continues in epoch 1 after step 2 (restart 1)" in computed(left)
    one, other = whole.result(), left.result()
    assert (one.restarts, other.restarts) == (0, 1)
    assert one.weights_digest == other.weights_digest
    for result in (one, other):
        assert (result.place, result.hosts) == (4, [socket.gethostname()])
    assert one.began < other.began
    for result in (one, other):  # the second ran in two processes, whose use is summed
        (process,), (node,) = result.processes, result.nodes
        assert result.usage_of == "run" and node.rank == 0
        assert process.cpu_seconds > 0 and result.cpu_percent[0] > 0
        assert (result.flops_per_sample, result.flops_uncounted) == (
            4 * result.parameters,
            [],
        )
    assert whole.ranks()[0].unmeasured == {}
    assert one.quality > 0.8
    assert (one.better, one.bounded) == ("higher", True)
    assert (one.precision, one.deterministic) == ("float32", True)
    assert one.quality_labels == 18
    assert (
        one.constant_quality
        == other.constant_quality
        == max(np.bincount(labels_of(data))) / 18
    )
    best = max(record.validation["accuracy"] for record in whole.epochs())
    assert (
        one.best_quality
        == whole.epochs()[one.best_epoch - 1].validation["accuracy"]
        == best
    )
    records = whole.epochs()
    assert [(r.steps, r.samples) for r in records] == [(6, 42)] * 6
    assert [(r.loss, r.validation, r.learning_rate) for r in records] == [
        (r.loss, r.validation, r.learning_rate) for r in left.epochs()
    ]
    assert whole.ranks()[0].build.keys() == {"linear"}
    assert (whole.path / "model.keras").exists()
    assert not whole.checkpoint.exists()
    assert {
        "build",
        "join",
        "compile",
        "steps",
        "evaluation",
        "proof",
        "saving",
    } <= one.phases.keys()


def test_a_run_on_gpus_records_what_they_did_in_its_training_time(
    data, tmp_path, nvml, monkeypatch
):
    class OnGpus(Linear):
        def devices(self, device):
            return ["Tesla V100", "NVIDIA H100"]

    one, two = cards(2, energy=None)
    two.fails = {"*": GPU_IS_LOST}
    nvml(one, two)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a0")
    folder = folder_of(tmp_path, point_of(data, epochs=2))
    gpus = ["GPU-a0", "GPU-b1"]
    run_synchronous(
        OwnPart(folder, folder.point(), ALONE, PhaseClock(), "gpu", gpus, OnGpus())
    )
    (rank,), result = folder.ranks(), folder.result()
    assert (rank.devices, rank.device_uuids) == (
        ["Tesla V100", "NVIDIA H100"],
        ["GPU-a0"],
    )
    used, lost = result.gpus
    assert (used.rank, used.device, used.percent, used.energy_from) == (
        0,
        0,
        0,
        "power",
    )
    assert used.joules > 0 and used.watts == pytest.approx(300)
    assert lost.model_dump(exclude={"rank", "device"}) == dict.fromkeys(
        [
            *(
                "percent",
                "memory_percent",
                "memory_bytes",
                "memory_total_bytes",
                "allocated_bytes",
            ),
            "reserved_bytes",
            *("watts", "joules", "energy_from"),
        ]
    )
    assert result.gpu_percent == [0]


class Pending:
    """The pending losses of a call."""

    def __init__(self, losses, asked: list[int], call: int) -> None:
        self._losses, self._asked, self._call = losses, asked, call

    def __float__(self) -> float:
        self._asked.append(self._call)
        return float(self._losses)


def test_no_step_is_waited_for_to_look_for_a_request_to_stop(
    data, tmp_path, monkeypatch
):
    class Asynchronous(Linear):
        def trainer(self, *given):
            trainer = super().trainer(*given)
            train = trainer.train

            def begun(call):
                nonlocal calls
                calls += 1
                return Pending(train(call), asked, calls)

            trainer.train = begun
            return trainer

    class Stop(type(tmp_path)):
        def exists(self):
            looks.append((calls, len(asked)))
            return calls >= 8  # the first two compile

    calls, asked, looks = 0, list[int](), list[tuple[int, int]]()
    monkeypatch.setattr("scalestudy.training.checkpoint_consensus.LOOK_EVERY", 0.0)
    monkeypatch.setattr(RunFolder, "stop", Stop(tmp_path / "stop"))
    folder = folder_of(tmp_path, point_of(data))
    run_synchronous(
        OwnPart(
            folder, folder.point(), ALONE, PhaseClock(), "cpu", engine=Asynchronous()
        )
    )
    # Two calls compile. 42 samples by 8, in calls of two equal steps: four calls an epoch, and its end.
    assert looks == [(3, 2), (4, 2), (5, 2), (6, 2), (6, 6), (7, 6), (8, 6)]
    assert asked == [*range(1, 9)]  # the last two for the checkpoint
    assert folder.result() is None and folder.checkpoint.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("phase", "function"), [("callbacks", "<lambda>"), ("input", "stalled")]
)
def test_a_run_that_falls_silent_ends_with_its_place_and_its_stacks(
    data, tmp_path, phase, function
):
    launch = ResolvedLaunch(progress_timeout=4)
    folder = folder_of(tmp_path, point_of(data, evaluate_every=6).on(launch=launch))
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "linear.py"), str(folder.path), phase],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == EXIT_CODE
    silence = folder.hang()
    assert (silence.rank, silence.phase, silence.epoch, silence.lives) == (
        0,
        phase,
        1,
        True,
    )
    assert silence.step == {"callbacks": 6, "input": 2}[phase]
    assert f" in {function}\n" in done.stderr
    assert "Expected progress of every rank within 4 s" in done.stderr
    assert folder.result() is None


def test_the_least_difference_between_two_workers_shows_in_the_proof(data):
    def work(joined):
        session = Session(point_of(data), Linear(), joined, *data, PhaseClock())
        equal = session.digests()
        session.trainer.weight[0, 0] += 1e-9 * joined.group.rank
        return equal, session.digests()

    (equal, different), _ = both(work)
    assert len(set(equal)) == 1
    assert len(set(different)) == 2


def join_alone() -> Joined:
    return join("single", ALONE, workers=1, device="cpu")


class Threads(Group):
    """Two processes of a run, played by threads that really wait for each other."""

    def __init__(self, rank: int, shared: dict) -> None:
        super().__init__(rank, 2)
        self._shared = shared
        self.sent: list = []

    def host_sum(self, values):
        self.sent.append((values.dtype, values.nbytes))
        self._shared[self.rank] = values
        self._shared["barrier"].wait(20)
        total = self._shared[0] + self._shared[1]
        self._shared["barrier"].wait(20)
        return total


def both(work) -> list:
    """Return the results of `work` for both ranks."""
    shared, found = {"barrier": threading.Barrier(2)}, [None, None]

    def one(rank: int) -> None:
        group = Threads(rank, shared)
        found[rank] = work(
            Joined(group, Replicas(group, 2, slices=[(rank, rank + 1)], size=2))
        )

    threads = [
        threading.Thread(target=one, args=(rank,), daemon=True) for rank in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert None not in found
    return found


def trained(data, joined: Joined, **train) -> Session:
    session = Session(point_of(data, **train), Linear(), joined, *data, PhaseClock())
    session.compile()
    session.records = list(session.epoch_records())
    return session


def test_two_processes_end_with_the_weights_of_one_and_prove_it(data):
    def work(joined):
        session = trained(data, joined)
        return session, session.digests()

    alone = trained(data, join_alone())
    (first, digests), (second, same) = both(work)
    assert len(digests) == 2
    assert len({*digests, *same}) == 1
    assert np.allclose(first.trainer.weight, alone.trainer.weight, rtol=0, atol=1e-12)
    assert np.allclose(first.trainer.mean, alone.trainer.mean, rtol=0, atol=1e-12)
    for session in (first, second):
        assert [r.validation["accuracy"] for r in session.records] == [
            r.validation["accuracy"] for r in alone.records
        ]
        assert [r.loss for r in session.records] == pytest.approx(
            [r.loss for r in alone.records]
        )


def test_a_run_knows_its_nodes_and_its_first_start_through_a_checkpoint(
    data, monkeypatch
):
    names = threading.local()
    monkeypatch.setattr("socket.gethostname", lambda: names.here)

    def work(joined):
        names.here = f"node-{joined.group.rank}"
        first = Session(
            point_of(data), Linear(), joined, *data, PhaseClock(started=1000.0)
        )
        kept = first.checkpoint()
        names.here = "node-7"
        second = Session(
            point_of(data), Linear(), joined, *data, PhaseClock(started=2000.0)
        )
        alone = second.hosts.copy()
        second.restore(*kept)
        return first.hosts, alone, second.hosts, second.began

    first, alone, all_of_them, began = both(work)[0]
    assert first == {"node-0", "node-1"} and alone == {"node-7"}
    assert all_of_them == {"node-0", "node-1", "node-7"}
    assert began == 1000.0


def test_a_checkpoint_keeps_what_each_process_holds_for_itself(data):
    def work(joined):
        first = trained(data, joined, epochs=2)
        own = first.trainer.state.values().own[0]
        first.trainer.mean = own[0] + joined.group.rank
        kept = first.checkpoint()
        second = Session(
            point_of(data, epochs=2), Linear(), joined, *data, PhaseClock()
        )
        second.restore(*kept)
        return kept[1], first.trainer.mean, second.trainer.mean

    (values, mine, again), (same, others, others_again) = both(work)
    assert values[-1].shape == (2, 12)
    assert all(np.array_equal(a, b) for a, b in zip(values, same, strict=True))
    assert np.array_equal(mine, again)
    assert np.array_equal(others, others_again)
    assert not np.array_equal(mine, others)


def test_what_callbacks_decide_on_rank_0_reaches_every_rank(data):
    def work(joined):
        session = Session(point_of(data), Linear(), joined, *data, PhaseClock())
        session.trainer.has_callbacks = True
        session.trainer.own_rate = 0.1
        session.trainer.stop_after = 2 if joined.group.rank == 0 else 99
        return session, list(session.epoch_records()), session.digests()

    (first, records, digests), (second, same, _) = both(work)
    assert len(records) == len(same) == 2
    assert [record.learning_rate for record in records] == [
        record.learning_rate for record in same
    ]
    assert [record.learning_rate for record in records] == pytest.approx([0.1, 0.1])
    assert (first.trainer.rate, second.trainer.rate) == (0.05, 0.05)
    assert len(set(digests)) == 1
    assert first.trainer.told[:3] == [(6, 6), "begin", 0]
    assert second.trainer.told == []


def test_a_rate_that_a_callback_sets_before_an_epoch_is_that_of_every_rank(data):
    class Scheduled:
        def __init__(self, trainer):
            self._trainer = trainer

        def on_train_begin(self):
            self._trainer.weight = np.ones_like(self._trainer.weight)

        def on_epoch_begin(self, epoch):
            self._trainer.own_rate = 0.1 / 2**epoch

    def work(joined):
        session = Session(point_of(data), Linear(), joined, *data, PhaseClock())
        trainer = session.trainer
        trainer.has_callbacks, trainer.own_rate = True, 1.0
        trainer.callbacks = lambda **_: Scheduled(trainer)
        decisions = CallbackDecisions(trainer, joined.group, epochs=2, steps=1)
        decisions.begin()
        rates = []
        for epoch in range(2):
            decisions.epoch_begin(epoch)
            rates.append(trainer.rate)
        return rates, trainer.weight

    (first, weight), (second, same) = both(work)
    assert first == second == [0.1, 0.05]
    assert (weight == 1).all() and (same == 1).all()


class Watching:
    """Callbacks that change nothing or rank 0's weights."""

    def __init__(self, trainer, spoil):
        self._trainer, self._spoil = trainer, spoil

    def on_epoch_end(self, epoch, logs):
        if self._spoil:
            self._trainer.weight = np.where(self._trainer.weight < 0, -0.0, np.nan)


@pytest.mark.parametrize("spoil", [False, True])
def test_weights_are_sent_after_callbacks_only_if_they_differ_and_as_they_are(
    data, spoil
):
    def work(joined):
        session = Session(point_of(data), Linear(), joined, *data, PhaseClock())
        trainer = session.trainer
        trainer.has_callbacks = True
        trainer.callbacks = lambda **_: Watching(trainer, spoil)
        decisions = CallbackDecisions(trainer, joined.group, epochs=1, steps=1)
        joined.group.sent.clear()
        decisions.epoch_end(0, {})
        return trainer, joined.group.sent

    (first, sent), (second, same) = both(work)
    for name in ("weight", "velocity", "mean"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
    assert np.isnan(first.weight).any() == spoil
    assert sent == same
    own, agreement, digests, *weights = sent
    assert own[1] == first.mean.nbytes
    assert agreement == (np.float64, 16)
    assert digests == (np.int64, 2 * 32)
    variables = (first.weight, first.velocity, first.mean) if spoil else ()
    assert weights == [(np.int64, variable.nbytes) for variable in variables]


def test_the_parts_of_all_ranks_are_gathered_as_they_are(data):
    def work(joined):
        rank = joined.group.rank
        odd = np.array([[-0.0, np.nan, rank]], np.float16)
        return joined.group.gather([odd, np.full((2, 1), rank, np.uint8)])

    (odd, small), (again, _) = both(work)
    assert (
        odd.tobytes()
        == again.tobytes()
        == np.float16([-0.0, np.nan, 0, -0.0, np.nan, 1]).tobytes()
    )
    assert small.tolist() == [[0], [0], [1], [1]]
