"""Speed-up of exchanging gradients in buckets: one bucket against several over a slow network, as ratios.

`sudo .venv/bin/python benchmarks/overlap.py [--rate 500] [--workers 2] [--rounds 7]`. Real workers run in
network namespaces, joined by a bridge whose links are limited to `--rate` Mbit/s (`tc`'s token bucket
filter): over a slow network the cores are free for back-propagation. The processes of a strategy train with
all bucket sizes in turn, one epoch each, so that a drift of the machine's speed affects all of them. Ratios
are taken within a round, and the result is the median over the rounds. Needs root, `ip` and `tc`.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import SECRET, new_secret
from scalestudy.cluster.worker_environment import process_environment
from scalestudy.config.point import Point
from scalestudy.config.settings import DataSettings
from scalestudy.data.preparation import prepare
from scalestudy.data.split import Split, ensure_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.hardware import cores
from scalestudy.plugins.engines import DEFAULT, engine_traits
from scalestudy.plugins.strategies import traits

PORT, NETWORK = 20000, "10.231.77"
TASK = """
import keras
data = "images.npz"
def model(data):
    layers = keras.layers
    hidden = [layers.Dense(1024, "relu") for _ in range(8)]  # 4 MiB of gradients each
    return keras.Sequential([keras.Input(data.input_shape), layers.Flatten(), *hidden,
                             layers.Dense(data.classes, "softmax")])
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rate", type=int, default=500, help="of each worker's link, in Mbit/s"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128, help="of each worker")
    parser.add_argument("--steps", type=int, default=4, help="of an epoch")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--size",
        action="append",
        help='a size of buckets; "4 MiB" and "16 MiB" if none',
    )
    parser.add_argument(
        "--strategy", choices=["multiworker", "horovod"], action="append"
    )
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit(
            "expected root, who may make network namespaces; received another user. Run it with sudo."
        )
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # so that the namespaces are removed then, too
    sizes = ["all", *(options.size or ["4 MiB", "16 MiB"])]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as network:
        point = point_of(Path(folder), options)
        names = network.enter_context(slow_network(options.workers, options.rate))
        for strategy in options.strategy or [
            "multiworker",
            *(["horovod"] if horovod_built() else []),
        ]:
            report(strategy, sizes, measure(strategy, sizes, point, names), options)


def point_of(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return a point with one epoch per round and one to warm up, on noise, which changes no speed."""
    (folder / "overlap_task.py").write_text(TASK)
    batch = options.batch * options.workers
    rng, count = np.random.default_rng(0), batch * options.steps + 8
    arrays = {
        "x_train": rng.integers(0, 256, (count, 32, 32)).astype("uint8"),
        "y_train": rng.integers(0, 10, count),
    }
    np.savez(folder / "images.npz", **arrays)
    prepared = prepare(
        DataSettings(source=str(folder / "images.npz"), cache=str(folder))
    )
    split = ensure_split(prepared, 8 / count, 0)
    epochs = options.rounds + 1
    train = {
        "epochs": epochs,
        "batch_size": options.batch,
        "optimizer": "sgd",
        "learning_rate": 1e-4,
        "schedule": "constant",
        "evaluate_every": epochs,
    }
    return {
        "name": "overlap",
        "study": "overlap",
        "task": str(folder / "overlap_task.py"),
        "seed": 0,
        "workers": options.workers,
        "train": train,
        "data": {"source": "images.npz"},
        "files": {"prepared": str(prepared.path), "split": str(split.path)},
    }


@contextmanager
def slow_network(workers: int, rate: int) -> Iterator[list[str]]:
    """Yield the names of `workers` network namespaces, joined by a bridge in another one."""
    hub = f"overlap-{os.getpid()}"
    names = [f"{hub}-{rank}" for rank in range(workers)]
    with ExitStack() as left:
        for name in (hub, *names):
            tool("ip", "netns", "add", name)
            left.callback(tool, "ip", "netns", "del", name)
        tool("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        tool("ip", "-n", hub, "link", "set", "bridge", "up")
        for rank, name in enumerate(names):
            tool(
                "ip",
                "-n",
                hub,
                "link",
                "add",
                f"to{rank}",
                "type",
                "veth",
                "peer",
                "slow",
                "netns",
                name,
            )
            tool("ip", "-n", hub, "link", "set", f"to{rank}", "master", "bridge", "up")
            tool(
                "ip",
                "-n",
                name,
                "address",
                "add",
                f"{NETWORK}.{rank + 1}/24",
                "dev",
                "slow",
            )
            tool("ip", "-n", name, "link", "set", "lo", "up")
            tool("ip", "-n", name, "link", "set", "slow", "up")
            shape = ["rate", f"{rate}mbit", "burst", "256k", "latency", "50ms"]
            tool("tc", "-n", name, "qdisc", "add", "dev", "slow", "root", "tbf", *shape)
        yield names


def tool(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"expected `{' '.join(command)}` to work; received: {done.stderr.strip()}. A kernel without "
            "veth, bridge or tbf cannot shape a network."
        )


def measure(
    strategy: str, sizes: list[str], point: dict[str, Any], names: list[str]
) -> dict[str, list[float]]:
    """Seconds per step for each bucket size, one value per round."""
    hosts = tuple(f"{NETWORK}.{rank + 1}" for rank in range(len(names)))
    secret, granted, processes = new_secret(), cores.granted(), []
    for rank, name in enumerate(names):
        placement = Placement(rank, len(names), 0, 1, rank, hosts, "benchmark", PORT)
        changes = process_environment(
            os.environ,
            engine_traits(DEFAULT),
            gpus=(),
            rendezvous=traits(strategy).rendezvous,
            placement=placement,
            quiet=True,
        )
        variables = changes.applied(os.environ) | {
            SECRET: secret,
            "HOROVOD_GLOO_IFACE": "slow",
            "OMP_NUM_THREADS": "1",
        }
        errand = {
            "placement": asdict(placement),
            "sizes": sizes,
            "point": point | {"strategy": strategy},
        }
        core = str(granted[rank % len(granted)])
        inside = ["ip", "netns", "exec", name, "taskset", "--cpu-list", core]
        command = [*inside, sys.executable, __file__, json.dumps(errand)]
        processes.append(
            subprocess.Popen(
                command,
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    try:
        answers = [process.stdout.readline() for process in processes if process.stdout]
        for process in processes:
            process.communicate()  # closes its input: all have answered
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
    if any(process.returncode for process in processes):
        sys.exit(f"{strategy} failed: its messages are above")
    found: dict[str, list[float]] = json.loads(answers[0])
    return found


def rank_main(errand: dict[str, Any]) -> None:
    """Run one worker: an epoch with each size in turn; the first of each is not counted."""
    from scalestudy.util.unused_packages import without_unused

    with without_unused(engine_traits(DEFAULT).unused):
        from scalestudy.engines.tensorflow.engine import ENGINE
    from scalestudy.engines.group import join
    from scalestudy.engines.tensorflow.engine import (
        configure_tensorflow,
        set_arithmetic,
    )
    from scalestudy.measure.clock import PhaseClock
    from scalestudy.training.session import Session

    configure_tensorflow(threads=1, at_once=2)
    placement = Placement(
        **errand["placement"] | {"hosts": tuple(errand["placement"]["hosts"])}
    )
    sessions, joined = {}, None
    for size in errand["sizes"]:
        terms = {
            "implementation": errand["point"]["strategy"],
            "launch": {"bucket_size": size},
        }
        point = Point.model_validate(errand["point"] | {"terms": terms})
        joined = joined or join(
            point.implementation, placement, workers=placement.size, device="cpu"
        )
        files = point.needed_files()
        set_arithmetic(point.seed, point.train.precision)
        prepared, split = Prepared.open(files.prepared), Split.load(files.split)
        session = Session(point, ENGINE, joined, prepared, split, PhaseClock())
        session.compile()
        sessions[size] = session.epoch_records()
    rounds = [
        {size: next(records) for size, records in sessions.items()}
        for _ in range(point.train.epochs)
    ]
    found = {
        size: [each[size].train_seconds / each[size].steps for each in rounds[1:]]
        for size in sessions
    }
    print(json.dumps(found), flush=True)
    assert joined is not None
    sys.stdin.read()  # stay until all are done: a rank that leaves closes the others' connections
    joined.group.close()


def report(
    strategy: str,
    sizes: list[str],
    found: dict[str, list[float]],
    options: argparse.Namespace,
) -> None:
    """Print the ratios, each with its smallest and largest round."""
    print(
        f"\n{strategy}, {options.workers} workers, {options.rate} Mbit/s: seconds of a step, and ratio one "
        f"bucket : buckets; median [smallest, largest] of {options.rounds} rounds"
    )
    for size in sizes:
        ratios = [
            one / other for one, other in zip(found["all"], found[size], strict=True)
        ]
        print(f"  {size:8} {_spread(found[size])}   {_spread(ratios)}", flush=True)


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):6.2f} [{min(values):.2f}, {max(values):.2f}]"


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].startswith("{"):
        rank_main(json.loads(sys.argv[1]))
        sys.stdout.flush()
        os._exit(0)
    main()
