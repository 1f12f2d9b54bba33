"""A complete engine in NumPy: softmax regression with momentum. It shows everything that a run needs of an
engine.

`python linear.py RUN_DIR` computes a run with it in a process where no framework can be imported. With a
second argument, "callbacks" or "input", training hangs there, under a watchdog.
"""

import importlib.abc
import json
import sys
import threading
from pathlib import Path

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.config.metric_senses import Sense
from scalestudy.engines.group import Group, Joined, Replicas
from scalestudy.engines.interface import Flops, Values, Variable
from scalestudy.hardware.no_gpus import Reason
from scalestudy.measure.clock import PhaseClock
from scalestudy.plugins.engines import EngineTraits, Requirement, engine_traits
from scalestudy.plugins.traits import Traits
from scalestudy.store.run_folder import RunFolder

FRAMEWORKS = ("tensorflow", "keras", "horovod", "torch", "jax")
ALONE = Placement(0, 1, 0, 1, 0, ("localhost",), "test")


class Linear:
    """The engine."""

    def set_up(self, point, *, threads, device):
        self.told = (point.name, threads, device)

    def devices(self, device):
        return [f"{device}:0"]

    def why_missing(self):
        return Reason("NumPy has none", "Compute on CPUs.")

    def build_record(self):
        return {"linear": {"numpy": np.__version__}}

    def gpu_memory(self, device):
        return [(None, None)] * (device == "gpu")

    def trainer(self, point, prepared, rates, joined):
        return LinearTrainer(point, prepared, rates, joined)


class LinearTrainer:
    """The weights (shape [pixels, classes]), their velocity, and a mean of inputs that each worker keeps."""

    metrics = ("accuracy",)
    sense = Sense("higher", bounded=True)
    phases = (0,)

    def __init__(self, point, prepared, rates, joined):
        self._group, self._replicas = joined
        self._rates, self._scale = rates, prepared.scale
        shape = (int(np.prod(prepared.input_shape)), prepared.classes)
        random = np.random.default_rng(point.seed)
        self.weight, self.velocity = random.normal(0, 0.1, shape), np.zeros(shape)
        self.mean = np.zeros(shape[0])
        self.parameters = self.weight.size
        self.variables = [
            Variable("float64", shape, False),
            Variable("float64", shape, False),
            Variable("float64", shape[:1], True),
        ]
        (self.suffix,) = engine_traits(point.engine).model_suffixes
        self.told: list[object] = []
        self.stop_after = point.train.epochs
        self.own_rate = None
        self.has_callbacks = self.stops = False

    @property
    def state(self):
        """The values, which are this engine's own attributes."""
        return self

    @property
    def file(self):
        """The file, which holds the weights alone."""
        return self

    @property
    def rate(self):
        return self.own_rate

    def set_rate(self, rate):
        self.own_rate = rate

    def _rows(self, part, step):
        inputs = part.inputs[step].reshape(len(part.inputs[step]), -1) * self._scale
        return inputs[: part.count], part.targets[step][: part.count]

    def enter(self, step):
        self.entered = step

    def stage(self, part, device):
        return part

    def not_finite(self):
        return None if np.isfinite(self.weight).all() else "weight"

    def train(self, call):
        (part,) = call
        losses = 0.0
        for step in range(part.steps):
            x, y = self._rows(part, step)
            p = _softmax(x @ self.weight)
            losses += -np.log(p[np.arange(len(y)), y]).sum()
            p[np.arange(len(y)), y] -= 1
            gradient = self._group.host_sum((x.T @ p / part.total).ravel()).reshape(
                self.weight.shape
            )
            rate = (
                self._rates[part.step + step]
                if self.own_rate is None
                else self.own_rate
            )
            self.velocity = 0.9 * self.velocity - rate * gradient
            self.weight = self.weight + self.velocity
            self.mean = (
                0.9 * self.mean + 0.1 * self._replicas.size * x.sum(0) / part.total
            )
        return np.float64(losses)

    def mark(self):
        return None

    def evaluate(self, call):
        (part,) = call
        x, y = self._rows(part, 0)
        p = _softmax(x @ self.weight)
        right = (p.argmax(1) == y).sum()
        return [
            np.float64(-np.log(p[np.arange(len(y)), y]).sum()),
            np.float64(part.count),
            np.float64(right),
        ]

    momentum = None

    def arrays(self, sums):
        return sums

    def results(self, sums):
        losses, seen, right = sums
        return {"loss": float(losses / seen), "accuracy": float(right / seen)}

    def constant(self, targets, answer):
        right = [part == answer.argmax() for part in targets]
        return float(np.concatenate(right).mean())

    def values(self):
        return Values(
            [self.weight.copy(), self.velocity.copy()], [self.mean[None].copy()]
        )

    def assign(self, values):
        self.weight, self.velocity = values.common
        self.mean = values.own[0][0]

    def average(self):
        self.mean = self._group.host_sum(self.mean) / self._group.size

    def share(self):
        self.weight, self.velocity, self.mean = map(
            self._group.share, (self.weight, self.velocity, self.mean)
        )

    def weights(self):
        return [[self.weight, self.mean]]

    def callbacks(self, *, epochs, steps):
        self.told.append((epochs, steps))
        return self

    def on_train_begin(self):
        self.told.append("begin")

    def on_epoch_begin(self, epoch):
        self.told.append(epoch)

    def on_train_batch_end(self, step):
        self.told.append(step)

    def on_epoch_end(self, epoch, logs):
        """Halve the rate, round rank 0's weights, and stop after `stop_after` epochs."""
        self.own_rate = 0.1 / 2**epoch
        self.weight = np.round(self.weight, 3)
        self.stops = epoch + 1 >= self.stop_after

    def on_train_end(self, logs):
        self.told.append(sorted(logs))

    def flops(self):
        return Flops(4.0 * self.weight.size)

    def prove_savable(self, path):
        self.save(path)
        assert np.array_equal(json.loads(Path(path).read_text()), self.weight)

    def save(self, path):
        Path(path).write_text(json.dumps(self.weight.tolist()))

    def restore(self, path):
        self.weight = np.array(json.loads(Path(path).read_text()))

    def inference(self):
        return self

    def outputs(self, inputs, scale):
        return _softmax(inputs.reshape(len(inputs), -1) * scale @ self.weight)

    def losses(self, inputs, targets, scale):
        return -np.log(self.outputs(inputs, scale)[np.arange(len(targets)), targets])


class LinearTraits(EngineTraits):
    """Properties of the engine that are known without importing it."""

    name, label, implementation = "linear", "NumPy", "linear:ENGINE"
    strategies = (
        Traits(
            "rows",
            "NumPy: any number of workers at once",
            "linear",
            plain=True,
            join="linear:join",
        ),
    )
    default_strategy, model_suffixes = "rows", (".weights",)
    requirements = (Requirement("NumPy", ("numpy",), ""),)

    def environment(self, variables, **given):
        return {"LINEAR_ENGINE": "yes", "TF_CONFIG": None}


def join(placement, *, workers, device, communication):
    """Put all workers into one process, whose rows are computed at once."""
    return Joined(Group(), Replicas(Group(), workers, slices=[(0, workers)]))


ENGINE, TRAITS = Linear(), LinearTraits()


def _softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


class NoFramework(importlib.abc.MetaPathFinder):
    """Make imports of frameworks fail."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in FRAMEWORKS:
            raise ModuleNotFoundError(f"{name} is asked for, where there must be none")


def silent_at(phase: str, folder: RunFolder, engine: Linear, clock: PhaseClock) -> None:
    """Make training hang in a phase, and start a watchdog."""
    from scalestudy.data.loader import Loader
    from scalestudy.measure.watchdog import Watchdog

    if phase == "callbacks":
        LinearTrainer.on_epoch_end = lambda self, epoch, logs: threading.Event().wait()
        made = engine.trainer
        engine.trainer = lambda *given: with_callbacks(made(*given))
    else:
        epoch = Loader.epoch

        def stalled(self, *given, **more):
            yield next(iter(epoch(self, *given, **more)))
            threading.Event().wait()

        Loader.epoch = stalled
    Watchdog(
        folder, 0, 1, clock.heartbeat, folder.point().launch.progress_timeout
    ).start()


def with_callbacks(trainer: LinearTrainer) -> LinearTrainer:
    trainer.has_callbacks = True
    return trainer


def main(path: str, silent: str = "") -> None:
    """Compute the run in the folder `path`; a file `stop` beside it requests a stop after the first call."""
    sys.meta_path.insert(0, NoFramework())
    from scalestudy.training.device_setup import OwnPart
    from scalestudy.training.rank_run import run_synchronous

    folder, clock = RunFolder(path), PhaseClock()
    if (folder.path.parent / "stop").exists():
        folder.ask_to_stop()
    engine = Linear()
    if silent:
        silent_at(silent, folder, engine, clock)
    run_synchronous(OwnPart(folder, folder.point(), ALONE, clock, "cpu", engine=engine))
    print("LOADED", sorted(set(FRAMEWORKS) & set(sys.modules)))


if __name__ == "__main__":
    main(*sys.argv[1:])
