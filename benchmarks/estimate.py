"""Error of an estimate: the step time predicted from one worker and the link against the measured one.

`.venv/bin/python benchmarks/estimate.py [--nodes 2] [--rate 200] [--delay 1] [--bucket "1 MiB"]`. Every
worker runs in its own network namespace, joined with `--rate` Mbit/s and `--delay` ms one way; options given
several times are tried in all combinations. In each round the same processes first time all-reduces over the
link, as `scalestudy check` does; then each trains alone, all at the same time, so that the cores are as busy
as in joint training; then they train together. The estimate uses the first two and is compared with the
third. Needs root, `ip` and `tc`.
"""

import argparse
import itertools
import json
import logging
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from far_network import far_network
from overlap import NETWORK, PORT, point_of
from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import SECRET, new_secret
from scalestudy.cluster.worker_environment import process_environment
from scalestudy.config.point import Point
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.features.advise.network import KnownNetwork, TimedAllReduce, about, exactly, route_of
from scalestudy.features.advise.step_model import OneWorker, StepModel, unmeasured_of
from scalestudy.hardware import cores
from scalestudy.plugins.engines import DEFAULT, engine_traits
from scalestudy.plugins.strategies import traits

SIZES = (1024, 65536, 2**20, 2**22)
COLLECTIVE = {"multiworker": "ring", "horovod": "horovod-gloo"}
TASK = """
import keras
data = "images.npz"
def model(data):
    layers = keras.layers
    hidden = [layers.Dense(512, "relu") for _ in range(4)]  # 6 MiB of gradients, then 1 MiB each
    return keras.Sequential([keras.Input(data.input_shape), layers.Flatten(), *hidden,
                             layers.Dense(data.classes, "softmax")])
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""
HEAD = "strategy     nodes  Mbit/s  ms  buckets   predicted ms [range]        measured ms      off  inside"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, action="append")
    parser.add_argument("--rate", type=int, action="append", help="of each node's link, in Mbit/s")
    parser.add_argument("--delay", type=float, action="append", help="one way, in ms")
    parser.add_argument("--bucket", action="append", help='"all", or a size as in `launch.bucket_size`')
    parser.add_argument("--strategy", choices=["multiworker", "horovod"], action="append")
    parser.add_argument("--batch", type=int, default=128, help="of each worker")
    parser.add_argument("--steps", type=int, default=4, help="of an epoch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", type=Path, help="file to append what was measured to, as JSON lines")
    parser.add_argument("--again", type=Path, help="such a file to estimate anew, without measuring")
    options = parser.parse_args()
    if options.again:
        print(HEAD)
        for line in options.again.read_text().splitlines():
            print("\n".join(rows(json.loads(line))))
        return
    if os.geteuid() != 0:
        sys.exit("expected root, who may make network namespaces; received another user. Run it with sudo.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the namespaces are removed then, too
    print(HEAD, flush=True)
    strategies = options.strategy or ["multiworker", *(["horovod"] if horovod_built() else [])]
    links = itertools.product(options.nodes or [2], options.rate or [200], options.delay or [0.0])
    for nodes, rate, delay in links:
        with tempfile.TemporaryDirectory() as folder, far_network(nodes, rate, delay / 1e3) as names:
            options.workers = nodes
            point = point_of(Path(folder), options)
            Path(point["task"]).write_text(TASK)
            for strategy in strategies:
                link = {"strategy": strategy, "nodes": nodes, "rate": rate, "delay": delay}
                link |= {"found": measure(strategy, options.bucket or ["all", "1 MiB"], point, names)}
                if options.record:
                    with options.record.open("a") as record:
                        record.write(json.dumps(link) + "\n")
                print("\n".join(rows(link)), flush=True)


def measure(strategy: str, buckets: Sequence[str], point: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the measurements of rank 0: see `rank_main`."""
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
        own = {SECRET: secret, "HOROVOD_GLOO_IFACE": "slow", "OMP_NUM_THREADS": "1"}
        errand = {
            "placement": asdict(placement),
            "buckets": list(buckets),
            "strategy": strategy,
            "point": point,
        }
        inside = ["ip", "netns", "exec", name, "taskset", "--cpu-list", str(granted[rank % len(granted)])]
        processes.append(
            subprocess.Popen(
                [*inside, sys.executable, __file__, json.dumps(errand)],
                env=changes.applied(os.environ) | own,
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
                process.kill()
    if any(process.returncode for process in processes):
        sys.exit(f"{strategy} failed: its messages are above")
    found: dict[str, Any] = json.loads(answers[0])
    return found


def rank_main(errand: dict[str, Any]) -> None:
    """Run one worker: in every round all-reduces of all sizes, an epoch alone, one together per bucket size.

    Prints `sums` (seconds by size), `alone` and `together` (seconds of a step, by rounds without the first),
    and `buckets` (bytes of each).
    """
    from scalestudy.util.modules import without_unused

    with without_unused(engine_traits(DEFAULT).unused):
        from scalestudy.engines.tensorflow.tensorflow_engine import ENGINE
    import numpy as np

    from scalestudy.data.split import Split
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.engines.exchange_trial import time_calls
    from scalestudy.engines.group import join
    from scalestudy.engines.tensorflow.tensorflow_engine import begin, set_up
    from scalestudy.engines.tensorflow.tensorflow_trial import TensorFlowTrial
    from scalestudy.measure.clock import PhaseClock
    from scalestudy.training.session import Session

    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # it warns of functions that are traced again
    set_up(threads=1, at_once=2)
    placement = Placement(**errand["placement"] | {"hosts": tuple(errand["placement"]["hosts"])})
    lonely = Placement(0, 1, 0, 1, 0, placement.hosts[placement.rank :][:1], "benchmark", PORT)
    joined = join(errand["strategy"], placement, workers=placement.size, device="cpu")
    single = join("single", lonely, workers=1, device="cpu")

    def records(bucket: str, way: Any, strategy: str, workers: int) -> tuple[Any, list[Any]]:
        terms = {"implementation": strategy, "launch": {"bucket_size": bucket}}
        changes = {"strategy": strategy, "workers": workers, "terms": terms}
        point = Point.model_validate(errand["point"] | changes)
        files = point.needed_files()
        begin(point.seed, point.train.precision)
        split = Split.load(files.split)
        if workers == 1:  # as many steps as in joint training
            split = replace(split, train=split.train[: len(split.train) // placement.size])
        session = Session(point, ENGINE, way, Prepared.open(files.prepared), split, PhaseClock())
        session.compile()
        return session.epoch_records(), [each.bytes for each in session.trainer.buckets]

    together = {
        bucket: records(bucket, joined, errand["strategy"], placement.size) for bucket in errand["buckets"]
    }
    alone, _ = records("all", single, "single", 1)
    sums: dict[int, list[float]] = {size: [] for size in SIZES}
    spent: dict[str, list[float]] = {bucket: [] for bucket in ("", *together)}
    for _ in range(errand["point"]["train"]["epochs"]):
        for size in SIZES:
            joined.group.host_sum(np.zeros(1, np.int64))
            sums[size].append(time_calls(TensorFlowTrial(), joined.group, size, 1, 20 if size < 2**20 else 4))
        for bucket, each in (("", alone), *((bucket, found[0]) for bucket, found in together.items())):
            joined.group.host_sum(np.zeros(1, np.int64))  # all start together
            record = next(each)
            spent[bucket].append(record.train_seconds / record.steps)
    answer = {
        "sums": {size: values[1:] for size, values in sums.items()},
        "alone": spent.pop("")[1:],
        "together": {bucket: values[1:] for bucket, values in spent.items()},
        "buckets": {bucket: found[1] for bucket, found in together.items()},
    }
    print(json.dumps(answer), flush=True)
    sys.stdin.read()  # stay until all are done: a rank that leaves closes the others' connections
    joined.group.close()


def rows(link: dict[str, Any]) -> list[str]:
    """Lines of the table: estimate and measurement for each bucket size."""
    lines = []
    for bucket, times in link["found"]["together"].items():
        buckets = link["found"]["buckets"][bucket]
        low, middle, high = (
            1e3 * each for each in estimated(link["strategy"], link["nodes"], link["found"], buckets)
        )
        real = 1e3 * statistics.median(times)
        lines.append(
            f"{link['strategy']:12} {link['nodes']:5} {link['rate']:7} {link['delay']:3g}  {bucket:8} "
            f"{f'{middle:7.1f} [{low:.1f}, {high:.1f}]':27} "
            f"{f'{real:7.1f} [{1e3 * min(times):.1f}, {1e3 * max(times):.1f}]':27} "
            f"{real / middle - 1:+4.0%}  {'yes' if low <= real <= high else 'no'}"
        )
    return lines


def estimated(
    strategy: str, nodes: int, found: dict[str, Any], buckets: Sequence[int]
) -> tuple[float, float, float]:
    """Lower end, median and upper end of a step's seconds."""
    import numpy as np

    name = COLLECTIVE[strategy]
    # Each round counts as its own timing, so that variation of the link widens the range.
    measured = tuple(
        TimedAllReduce(name, nodes, nodes, int(size), seconds)
        for size, values in found["sums"].items()
        for seconds in values
    )
    route = route_of(KnownNetwork(measured=measured, sources=("the same link",)), [name], near=max(buckets))
    step = statistics.median(found["alone"])
    ends = max(found["alone"]) / step, step / min(found["alone"])
    worker = OneWorker(
        # As many samples as workers: one for each worker, in one step together.
        batch=1,
        training_samples=nodes,
        epochs=1,
        epoch_seconds=about(nodes * step, max(1.01, *ends)),
        repeats=exactly(1.0),
        jitter=None,
        input_share=0.0,
        first_seconds=0.0,
        evaluation_seconds=0.0,
        other_seconds=0.0,
        bucket_bytes=tuple(buckets),
        bucket_work=(),
        runs=1,
        per_worker_rule=True,
    )
    model = StepModel(worker, route, unmeasured_of(gpu=False, xla=False, per_node=1))
    seconds = model.training(nodes, per_node=1).step_seconds
    low, middle, high = np.quantile(seconds, [0.025, 0.5, 0.975])
    return float(low), float(middle), float(high)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].startswith("{"):
        rank_main(json.loads(sys.argv[1]))
        sys.stdout.flush()
        os._exit(0)
    main()
