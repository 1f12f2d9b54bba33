"""The first ten minutes on a GPU, for `gpu.py --engine torch`: needs PyTorch, Keras, NumPy and this package.

Each network and precision is a process of its own, which prints its rows as it measures them. Ours and a
plain PyTorch loop train the same module on one batch that stays on the device, without loader and metrics,
in turns; ratios are taken within a round. `python gpu_torch.py ERRAND` measures one of them.
"""

import copy
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ["KERAS_BACKEND"] = (
    "torch"  # before anything imports Keras, which would take TensorFlow
)

import numpy as np

from gpu_table import ways_table
from scalestudy.config.point import Point
from scalestudy.config.settings import DataSettings
from scalestudy.data.loader import Loader, reader_of
from scalestudy.data.preparation import prepare
from scalestudy.data.store.prepared import Prepared
from scalestudy.hardware import cores
from scalestudy.launch import reserve
from scalestudy.training.agreement import digests_of_copies

HERE = Path(__file__).parent


class Network(NamedTuple):
    """A task with a module, one with the same Keras model, height and width of its images, and its batch.

    `small` is the size with --small.
    """

    task: str
    keras: str
    size: tuple[int, int]
    batch: int
    small: tuple[int, int]


NETWORKS = {
    "unet": Network("torch_unet", "unet", (768, 1024), 8, (32, 32)),
    "resnet50": Network(
        str(HERE / "torch_resnet50.py"),
        str(HERE / "resnet50.py"),
        (224, 224),
        64,
        (32, 32),
    ),
    "cnn": Network("torch_cnn", "cnn", (28, 28), 128, (28, 28)),
}
PRECISIONS = {
    "gpu": ("mixed_bfloat16", "float32", "tf32", "mixed_float16"),
    "cpu": ("float32", "mixed_bfloat16", "float64"),
}
SMALL_BATCH = 4
STEPS = {False: 30, True: 3}
"""Steps in a round, by --small."""
WITHIN = 300.0
"""Seconds for one network in one precision, most of them for compilation."""
LEAST = 20.0
"""Seconds with which it is worth starting one."""
STUDY_TAKES = 60.0
"""Seconds that must be left for a whole study."""


def run(
    device: str,
    *,
    small: bool,
    rounds: int,
    networks: Sequence[str],
    precisions: Sequence[str],
    minutes: float,
    whole_study: Callable[[str, float], str],
) -> bool:
    """Print the rows of all networks in all precisions, as far as `minutes` last, and a table of them.

    `whole_study` trains the U-Net in a precision as a study, beside a rate of bare steps; see
    `gpu.whole_study`. It follows the first precision.

    Returns:
        Whether every process succeeded that there was time for.
    """
    good, end = True, time.monotonic() + 60 * minutes
    found: dict[str, dict[str, str]] = {}
    for precision in precisions or PRECISIONS[device]:
        for name in networks or NETWORKS:
            left = end - time.monotonic()
            if left < LEAST:
                print(
                    f"{name}, {precision}: left out, since {minutes:g} minutes are over",
                    flush=True,
                )
                continue
            errand = {
                "name": name,
                "precision": precision,
                "device": device,
                "small": small,
                "rounds": rounds,
            }
            what, rows = f"{name}, {precision}", dict[str, str]()
            code = shown([errand], min(WITHIN, left), what, rows)
            found[what] = rows
            if code:
                print(f"{what}: failed ({code})", flush=True)
                good = False
        bare = rate_of(found.get(f"unet, {precision}", {}).get("ours", ""))
        if bare is not None and precision == next(
            iter(precisions or PRECISIONS[device])
        ):
            if end - time.monotonic() < STUDY_TAKES:
                print("a whole study: left out, for lack of time", flush=True)
            else:
                print(
                    f"unet, {precision}, a whole study: {whole_study(precision, bare)}",
                    flush=True,
                )
    print("\n".join(["", *ways_table(found)]), flush=True)
    return good


def shown(
    errands: Sequence[dict[str, Any]],
    within: float,
    what: str,
    rows: dict[str, str],
    variables: dict[str, str] | None = None,
) -> str:
    """Print what the processes of errands print, and add the first one's rows to `rows`, by label.

    Returns:
        Why they failed; "" otherwise.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-u", __file__, json.dumps(errand)],
            stdout=subprocess.PIPE,
            env=os.environ | (variables or {}),
            text=True,
        )
        for errand in errands
    ]
    over = threading.Event()

    def end() -> None:
        over.set()
        for process in processes:
            process.kill()

    timer = threading.Timer(within, end)
    timer.start()
    output = processes[0].stdout
    assert output is not None
    for line in output:
        print(line, end="", flush=True)
        label, colon, text = line.rstrip().removeprefix(f"{what}, ").partition(": ")
        if colon and line.startswith(what):
            rows[label] = text
    codes = [process.wait() for process in processes]
    timer.cancel()
    if over.is_set():
        return f"no end within {within:.0f} s"
    return next((str(code) for code in codes if code), "")


def rate_of(text: str) -> float | None:
    """Return the samples per second that a row begins with, if any."""
    match = re.match(r"([0-9.]+) samples/s", text)
    return float(match[1]) if match else None


def two_ranks(
    device: str, *, small: bool, networks: Sequence[str], precisions: Sequence[str]
) -> bool:
    """Print the rows of two ranks that share one device, each with a batch of its own.

    NCCL refuses two ranks on a GPU unless the variable says otherwise, which only some versions know.
    """
    good = True
    for precision in precisions or PRECISIONS[device][:1]:
        for name in networks or NETWORKS:
            with reserve.ports(1) as port:
                errand = {
                    "name": name,
                    "precision": precision,
                    "device": device,
                    "small": small,
                    "port": port,
                }
                errands = [errand | {"rank": rank} for rank in range(2)]
                code = shown(
                    errands, WITHIN, "", {}, {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
                )
            if code:
                print(
                    f"{name}, {precision}, two ranks on one device: failed ({code})",
                    flush=True,
                )
                good = False
    return good


def shared(errand: dict[str, Any]) -> None:
    """Measure a rank of `two_ranks`; rank 0 prints."""
    network, small, first = (
        NETWORKS[errand["name"]],
        errand["small"],
        errand["rank"] == 0,
    )
    batch = SMALL_BATCH if small else network.batch
    with tempfile.TemporaryDirectory() as folder:
        prepared = data_of(
            errand["name"], network.small if small else network.size, batch, folder
        )
        ours = OurSteps(
            network.task,
            errand,
            prepared,
            np.array(prepared.inputs[:batch]),
            np.array(prepared.targets[:batch]),
            exchanged=True,
        )
        for _ in range(3):
            finish(ours())
        rate = 2 * batch / seconds_of(ours, STEPS[small])
        digests = ours.digests()
    if first:
        same = (
            "equal weights" if len(set(digests)) == 1 else "OTHER WEIGHTS on each rank"
        )
        what = f"{errand['name']}, {errand['precision']}"
        print(
            f"{what}, two ranks on one device: {rate:.1f} samples/s of both, {same}",
            flush=True,
        )
    ours.close()


def main(errand: dict[str, Any]) -> None:
    import torch

    what = f"{errand['name']}, {errand['precision']}"
    network, gpu = NETWORKS[errand["name"]], errand["device"] == "gpu"
    steps, small = STEPS[errand["small"]], errand["small"]
    batch = SMALL_BATCH if small else network.batch

    def row(label: str, text: str) -> None:
        print(f"{what}, {label}: {text}", flush=True)

    row("device", device_check(gpu))
    with tempfile.TemporaryDirectory() as folder:
        prepared = data_of(
            errand["name"], network.small if small else network.size, batch, folder
        )
        inputs, targets = (
            np.array(prepared.inputs[:batch]),
            np.array(prepared.targets[:batch]),
        )
        ours = OurSteps(network.task, errand, prepared, inputs, targets)
        finish(ours())
        row("memory of ours alone", memory(gpu))
        arrays = prepared, inputs, targets
        ways: dict[str, Callable[[], Any]] = {
            "ours": ours,
            "plain": plain_step(network.task, errand, *arrays),
            "ours, compiled": OurSteps(network.task, errand, *arrays, compiled=True),
            "plain, compiled": plain_step(network.task, errand, *arrays, compiled=True),
            "ours, Keras model": OurSteps(network.keras, errand, *arrays),
            "ours, DistributedDataParallel of one": OurSteps(
                network.task, errand, *arrays, exchanged=True
            ),
        }
        if errand["precision"] in ("float32", "tf32"):
            ways["plain, PyTorch's own TF32"] = as_by_default(ways["plain"])
        for label, step in list(ways.items()):
            began = time.perf_counter()
            try:
                for _ in range(3):
                    finish(step())
            except (
                Exception
            ) as error:  # torch.compile needs a compiler, and supports not every GPU
                row(
                    label,
                    f"failed: {type(error).__name__}: {str(error).strip().splitlines()[0]}",
                )
                del ways[label]
            else:
                row(
                    f"{label}, first three steps",
                    f"{time.perf_counter() - began:.1f} s",
                )
        rates: dict[str, list[float]] = {label: [] for label in ways}
        for _ in range(errand["rounds"]):
            for label, step in ways.items():
                rates[label].append(batch / seconds_of(step, steps))
        for label, found in rates.items():
            ratio = statistics.median(
                one / base for one, base in zip(found, rates["plain"], strict=True)
            )
            row(label, f"{statistics.median(found):.1f} samples/s, {ratio:.2f} x plain")
        row("loader", ours.feed(statistics.median(rates["ours"])))
        if gpu:
            row("copy of a batch to the GPU", copies(inputs))
        row(
            "MFU of ours",
            model_utilisation(
                ours, statistics.median(rates["ours"]), errand["precision"]
            ),
        )
        details(ours, row, gpu=gpu, steps=steps)
    torch.distributed.destroy_process_group()
    torch.cuda.empty_cache()


def details(
    ours: "OurSteps", row: Callable[[str, str], None], *, gpu: bool, steps: int
) -> None:
    """Print waits of ours, what its time goes into, and whether it repeats bit for bit."""
    calls: dict[str, Callable[[], Any]] = {
        "a step": ours,
        "an evaluation of 4 batches": ours.evaluate,
    }
    if ours.trainer.state.momentum is not None:
        calls["batch-norm statistics of 4 batches"] = ours.statistics
    for what_waits, call in calls.items():
        call()
        row(
            f"waits for the device in {what_waits} of ours",
            waits(call) if gpu else "only on GPUs",
        )
    row(
        "time of ours by kernel" if gpu else "time of ours by operator",
        "; ".join(shares(ours, gpu)),
    )
    for label, text in determinism(ours, steps):
        row(label, text)


def device_check(gpu: bool) -> str:
    """Describe the device, and whether this PyTorch has kernels for it."""
    import torch

    threads = f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads"
    if not gpu:
        return f"{cores.cpu_model()}; {threads}"
    major, minor = torch.cuda.get_device_capability()
    built = f"sm_{major}{minor}" in torch.cuda.get_arch_list()
    fits = (
        "has its kernels"
        if built
        else f"has kernels of {', '.join(torch.cuda.get_arch_list())} only"
    )
    name = torch.cuda.get_device_name()
    return f"{name} ({major}.{minor}); CUDA {torch.version.cuda}; {threads}; the wheel {fits}"


def data_of(name: str, size: tuple[int, int], batch: int, folder: str) -> Prepared:
    """Return a batch of images of this size; their content does not change the speed."""
    if name == "unet":
        return prepare(
            DataSettings(source=f"indents:{2 * batch}", image_size=size, cache=folder)
        )
    rng, depth = np.random.default_rng(0), (3,) if name == "resnet50" else ()
    file = Path(folder, "images.npz")
    x = rng.integers(0, 256, (max(2 * batch, 20), *size, *depth), np.uint8)
    np.savez(file, x_train=x, y_train=np.arange(len(x)) % 10)
    return prepare(DataSettings(source=str(file), cache=folder))


class OurSteps:
    """Steps of a run of ours on one batch; a call takes the next one, on which random numbers depend.

    Attributes:
        trainer: Computes the steps.
        taken: Steps so far.
    """

    def __init__(
        self,
        task: str,
        errand: dict[str, Any],
        prepared: Prepared,
        inputs: Any,
        targets: Any,
        *,
        compiled: bool = False,
        exchanged: bool = False,
    ) -> None:
        import torch.distributed as dist

        from scalestudy.cluster.placement import Placement
        from scalestudy.data.samples import Slice
        from scalestudy.engines.group import join
        from scalestudy.engines.interface import engine_of

        batch, device, ranks = (
            len(inputs),
            errand["device"],
            2 if "rank" in errand else 1,
        )
        point = Point.model_validate(
            {
                "name": "gpu",
                "study": "gpu",
                "task": task,
                "engine": "torch",
                "strategy": "torch-single",
                "terms": {
                    "implementation": "torch-single",
                    "launch": {"device": device},
                },
                "workers": 1,
                "seed": 0,
                "data": {"source": "digits"},
                "train": {
                    "epochs": 1,
                    "batch_size": batch,
                    "optimizer": "adam",
                    "learning_rate": 1e-3,
                    "schedule": "constant",
                    "precision": errand["precision"],
                    "deterministic": False,
                    "compile": compiled,
                },
            }
        )
        engine, rank = engine_of("torch"), errand.get("rank", 0)
        place = Placement(
            rank,
            ranks,
            rank,
            ranks,
            0,
            ("localhost",) * ranks,
            "benchmark",
            errand.get("port"),
        )
        engine.set_up(
            point, threads=max(1, len(cores.granted()) // ranks), device=device
        )
        joined = join(
            "ddp" if ranks > 1 else "torch-single", place, workers=ranks, device=device
        )
        if (
            exchanged and ranks == 1
        ):  # as in a run of several workers, whose sums then cost nothing but their calls
            backend = "nccl" if device == "gpu" else "gloo"
            dist.init_process_group(
                backend, store=dist.HashStore(), rank=0, world_size=1
            )
            joined.replicas.exchanges = True
        self.trainer, self.taken = (
            engine.trainer(point, prepared, np.full(10_000, 1e-3), joined),
            0,
        )
        part = Slice(
            inputs[None],
            targets[None],
            start=rank * batch,
            count=batch,
            total=ranks * batch,
        )
        self._part, self._prepared, self._group = (
            self.trainer.stage(part, 0),
            prepared,
            joined.group,
        )

    def __call__(self) -> Any:
        self.taken += 1
        return self.trainer.train((self._part._replace(step=self.taken),))

    def evaluate(self) -> Any:
        """Evaluate the batch several times and read the sums, as at the end of an epoch."""
        return self.trainer.results(self._summed(self.trainer.evaluate))

    def statistics(self) -> None:
        """Compute statistics of batch normalisation from several batches, and use them."""
        with self.trainer.state.with_statistics(self._summed(self.trainer.statistics)):
            pass

    def feed(self, rate: float, batches: int = 20) -> str:
        """Return how many samples the loader brings to the device, and how many times what steps take."""
        loader = Loader(
            reader_of(self._prepared),
            slices=[(0, 1)],
            workers=1,
            global_batch=self._part.count,
            stage=self.trainer.stage,
        )
        rows = np.arange(len(self._prepared.inputs))
        order = np.resize(rows, batches * self._part.count)
        began = time.perf_counter()
        samples = sum(call[0].count for call in loader.epoch(order))
        brought = samples / (time.perf_counter() - began)
        return f"{brought:.1f} samples/s on the device, {brought / rate:.1f} x what ours takes"

    def digests(self) -> list[str]:
        """Return a digest of the weights of each rank."""
        return digests_of_copies(self.trainer, self._group)

    def close(self) -> None:
        """Leave the group of ranks."""
        self._group.close()

    def _summed(self, compute: Callable[[Any], list[Any]], batches: int = 4) -> Any:
        sums = compute((self._part,))
        for _ in range(batches - 1):
            sums = [a + b for a, b in zip(sums, compute((self._part,)), strict=True)]
        return self.trainer.arrays(sums)


def plain_step(
    task: str,
    errand: dict[str, Any],
    prepared: Prepared,
    inputs: Any,
    targets: Any,
    *,
    compiled: bool = False,
) -> Callable[[], Any]:
    """Return a function that takes a step as PyTorch's documentation advises, with the same module."""
    import torch

    from bare_torch import HALVES, loss_of
    from scalestudy.tasks.load import module_of
    from scalestudy.tasks.task import DataInfo

    device = torch.device("cuda" if errand["device"] == "gpu" else "cpu")
    wide = torch.float64 if errand["precision"] == "float64" else torch.float32
    module: Any = module_of(task).model(DataInfo.of(prepared))
    module = module.to(device, wide, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(module.parameters(), fused=True)
    if compiled:
        module = torch.compile(module)
    x, y = torch.from_numpy(inputs).to(device), torch.from_numpy(targets).to(device)
    x = x.reshape(*x.shape[:3], -1)
    half = HALVES.get(errand["precision"])
    scaler = torch.amp.GradScaler(device.type, enabled=half is torch.float16)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, half, enabled=half is not None):
            outputs = module(x.permute(0, 3, 1, 2).to(wide) / 255)
        loss = loss_of(outputs.to(wide), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step


def as_by_default(step: Callable[[], Any]) -> Callable[[], Any]:
    """Return the step with PyTorch's defaults for float32: TF32 in convolutions, not in matrix products.

    `float32` of a study has TF32 in neither, and `tf32` in both.
    """
    import torch

    cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul

    def stepped() -> Any:
        before = cudnn.allow_tf32, products.allow_tf32
        cudnn.allow_tf32, products.allow_tf32 = True, False
        try:
            return step()
        finally:
            cudnn.allow_tf32, products.allow_tf32 = before

    return stepped


def finish(loss: Any) -> None:
    """Wait until the device has computed a loss."""
    float(loss)


def seconds_of(step: Callable[[], Any], steps: int) -> float:
    """Return the seconds of a step, over several that are queued at once."""
    began = time.perf_counter()
    for _ in range(steps):
        last = step()
    finish(last)
    return (time.perf_counter() - began) / steps


def model_utilisation(ours: OurSteps, rate: float, precision: str) -> str:
    """Return the FLOP/s that a rate means, as a share of what the vendor states for the GPU."""
    import torch

    from scalestudy.analysis.costs import KINDS, device_peak

    flops = ours.trainer.flops().per_sample
    if flops is None:
        return "unknown: a layer could not be counted"
    reached = f"{flops * rate / 1e12:.2f} TFLOP/s"
    if not torch.cuda.is_available():
        return f"{reached}; the peak of CPUs is unknown"
    peak = device_peak(torch.cuda.get_device_name(), KINDS[precision])
    return (
        f"{reached}, {100 * flops * rate / peak:.1f} %"
        if peak
        else f"{reached}; its peak is unknown"
    )


def waits(step: Callable[[], Any], steps: int = 5) -> str:
    """Count the places of a step that make the host wait for the GPU, as PyTorch finds them."""
    import torch

    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for _ in range(steps):
                step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return f"{sum('synchroniz' in str(one.message) for one in found) / steps:g}"


def shares(step: Callable[[], Any], gpu: bool, most: int = 5) -> Iterator[str]:
    """Yield the kernels (on CPUs the operators) that take most of a step, with their share."""
    from torch.profiler import ProfilerActivity, profile

    with profile(
        activities=[ProfilerActivity.CUDA if gpu else ProfilerActivity.CPU]
    ) as profiled:
        finish(step())
    spent = "self_device_time_total" if gpu else "self_cpu_time_total"
    rows = sorted(
        ((getattr(one, spent), one.key) for one in profiled.key_averages()),
        reverse=True,
    )
    total = sum(time for time, _ in rows) or 1
    yield from (f"{name[:60]} {100 * time / total:.0f} %" for time, name in rows[:most])


def copies(inputs: Any, times: int = 20) -> str:
    """Return the speed of copies from page-locked memory, and from other memory, as TensorFlow copies."""
    import torch

    found = []
    for pinned in (True, False):
        batch = torch.from_numpy(inputs)
        batch = batch.pin_memory() if pinned else batch
        batch.to("cuda")
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(times):
            batch.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        found.append(times * batch.nbytes / (time.perf_counter() - began) / 1e9)
    return f"{found[0]:.1f} GB/s from page-locked memory, {found[1]:.1f} GB/s from other memory"


def memory(gpu: bool) -> str:
    """Return the peak of this process so far."""
    import torch

    if not gpu:
        return (
            f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"
        )
    used, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    return f"peak {used / 2**30:.2f} GiB allocated, {reserved / 2**30:.2f} GiB reserved"


def determinism(ours: OurSteps, steps: int) -> Iterator[tuple[str, str]]:
    """Yield whether repeated steps give the same bits, with any and with deterministic algorithms."""
    import torch

    begun, taken = ours.trainer.state.values(), ours.taken
    begun = copy.deepcopy(begun)  # on CPUs they share the memory of the model
    times: dict[str, float] = {}
    for label, exact in (("any algorithms", False), ("deterministic algorithms", True)):
        torch.use_deterministic_algorithms(exact)
        torch.backends.cudnn.benchmark = not exact
        finish(ours())
        ends = []
        for _ in range(2):
            ours.trainer.state.assign(begun)
            ours.taken = taken
            times[label] = seconds_of(ours, steps)
            ends.append(
                [np.array(weight) for weight in ours.trainer.state.weights()[0]]
            )
        same = all(np.array_equal(one, other) for one, other in zip(*ends, strict=True))
        cost = (
            f", {times[label] / times['any algorithms']:.2f} x the time"
            if exact
            else ""
        )
        yield label, f"{'the same bits' if same else 'other bits'} when repeated{cost}"


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    (shared if "rank" in given else main)(given)
