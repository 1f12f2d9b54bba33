"""The first ten minutes on a GPU, for `gpu.py --engine torch`: needs PyTorch, Keras, NumPy and this package.

Each network and precision is a process of its own, which prints its rows as it measures them. Ours and a
plain PyTorch loop train the same module on one batch that stays on the device, without loader and metrics,
in turns; ratios are taken within a round. `python gpu_torch.py ERRAND` measures one of them.
"""

import copy
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ["KERAS_BACKEND"] = "torch"  # before anything imports Keras, which would take TensorFlow

import numpy as np

from scalestudy.config.point import Point
from scalestudy.config.settings import DataSettings
from scalestudy.data.store.preparation import prepare
from scalestudy.data.store.prepared import Prepared
from scalestudy.hardware import cores

HERE = Path(__file__).parent


class Network(NamedTuple):
    """A task with a module, height and width of its images, and its batch: on GPUs and with --small."""

    task: str
    size: tuple[int, int]
    batch: int
    small: tuple[int, int]


NETWORKS = {
    "unet": Network("torch_unet", (768, 1024), 8, (32, 32)),
    "resnet50": Network(str(HERE / "torch_resnet50.py"), (224, 224), 64, (32, 32)),
    "cnn": Network("torch_cnn", (28, 28), 128, (28, 28)),
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


def run(
    device: str,
    *,
    small: bool,
    rounds: int,
    networks: Sequence[str],
    precisions: Sequence[str],
    minutes: float,
) -> bool:
    """Print the rows of all networks in all precisions, as far as `minutes` last.

    Returns:
        Whether every process succeeded that there was time for.
    """
    good, end = True, time.monotonic() + 60 * minutes
    for precision in precisions or PRECISIONS[device]:
        for name in networks or NETWORKS:
            left = end - time.monotonic()
            if left < LEAST:
                print(f"{name}, {precision}: left out, since {minutes:g} minutes are over", flush=True)
                continue
            errand = {
                "name": name,
                "precision": precision,
                "device": device,
                "small": small,
                "rounds": rounds,
            }
            command = [sys.executable, "-u", __file__, json.dumps(errand)]
            try:
                code: int | str = subprocess.run(command, check=False, timeout=min(WITHIN, left)).returncode
            except subprocess.TimeoutExpired:
                code = f"no end within {min(WITHIN, left):.0f} s"
            if code:
                print(f"{name}, {precision}: failed ({code})", flush=True)
                good = False
    return good


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
        prepared = data_of(errand["name"], network.small if small else network.size, batch, folder)
        inputs, targets = np.array(prepared.inputs[:batch]), np.array(prepared.targets[:batch])
        ours = OurSteps(network.task, errand, prepared, inputs, targets)
        finish(ours())
        row("memory of ours alone", memory(gpu))
        arrays = prepared, inputs, targets
        ways: dict[str, Callable[[], Any]] = {
            "ours": ours,
            "plain": plain_step(network.task, errand, *arrays),
            "ours, compiled": OurSteps(network.task, errand, *arrays, compiled=True),
            "plain, compiled": plain_step(network.task, errand, *arrays, compiled=True),
            "ours, DistributedDataParallel of one": OurSteps(network.task, errand, *arrays, exchanged=True),
        }
        if errand["precision"] in ("float32", "tf32"):
            ways["plain, PyTorch's own TF32"] = as_by_default(ways["plain"])
        for label, step in list(ways.items()):
            began = time.perf_counter()
            try:
                for _ in range(3):
                    finish(step())
            except Exception as error:  # torch.compile needs a compiler, and supports not every GPU
                row(label, f"failed: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
                del ways[label]
            else:
                row(f"{label}, first three steps", f"{time.perf_counter() - began:.1f} s")
        rates: dict[str, list[float]] = {label: [] for label in ways}
        for _ in range(errand["rounds"]):
            for label, step in ways.items():
                rates[label].append(batch / seconds_of(step, steps))
        for label, found in rates.items():
            ratio = statistics.median(one / base for one, base in zip(found, rates["plain"], strict=True))
            row(label, f"{statistics.median(found):.1f} samples/s, {ratio:.2f} x plain")
        row("MFU of ours", model_utilisation(ours, statistics.median(rates["ours"]), errand["precision"]))
        calls: dict[str, Callable[[], Any]] = {"a step": ours, "an evaluation of 4 batches": ours.evaluate}
        if ours.trainer.momentum is not None:
            calls["batch-norm statistics of 4 batches"] = ours.statistics
        for what_waits, call in calls.items():
            call()
            row(f"waits for the device in {what_waits} of ours", waits(call) if gpu else "only on GPUs")
        row("time of ours by kernel" if gpu else "time of ours by operator", "; ".join(shares(ours, gpu)))
        for label, text in determinism(ours, steps):
            row(label, text)
    torch.distributed.destroy_process_group()
    torch.cuda.empty_cache()


def device_check(gpu: bool) -> str:
    """Describe the device, and whether this PyTorch has kernels for it."""
    import torch

    threads = f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads"
    if not gpu:
        return f"{cores.cpu_model()}; {threads}"
    major, minor = torch.cuda.get_device_capability()
    built = f"sm_{major}{minor}" in torch.cuda.get_arch_list()
    fits = "has its kernels" if built else f"has kernels of {', '.join(torch.cuda.get_arch_list())} only"
    name = torch.cuda.get_device_name()
    return f"{name} ({major}.{minor}); CUDA {torch.version.cuda}; {threads}; the wheel {fits}"


def data_of(name: str, size: tuple[int, int], batch: int, folder: str) -> Prepared:
    """Return a batch of images of this size; their content does not change the speed."""
    if name == "unet":
        return prepare(DataSettings(source=f"indents:{2 * batch}", image_size=size, cache=folder))
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

        batch, device = len(inputs), errand["device"]
        point = Point.model_validate(
            {
                "name": "gpu",
                "study": "gpu",
                "task": task,
                "engine": "torch",
                "strategy": "torch-single",
                "terms": {"implementation": "torch-single", "launch": {"device": device}},
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
        engine, alone = engine_of("torch"), Placement(0, 1, 0, 1, 0, ("localhost",), "benchmark")
        engine.set_up(point, threads=len(cores.granted()), device=device)
        joined = join("torch-single", alone, workers=1, device=device)
        if exchanged:  # as in a run of several workers, whose sums then cost nothing but their calls
            backend = "nccl" if device == "gpu" else "gloo"
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
            joined.replicas.exchanges = True
        self.trainer, self.taken = engine.trainer(point, prepared, np.full(10_000, 1e-3), joined), 0
        part = Slice(inputs[None], targets[None], start=0, count=batch, total=batch)
        self._part = self.trainer.stage(part, 0)

    def __call__(self) -> Any:
        self.taken += 1
        return self.trainer.train((self._part._replace(step=self.taken),))

    def evaluate(self) -> Any:
        """Evaluate the batch several times and read the sums, as at the end of an epoch."""
        return self.trainer.results(self._summed(self.trainer.evaluate))

    def statistics(self) -> None:
        """Compute statistics of batch normalisation from several batches, and use them."""
        with self.trainer.with_statistics(self._summed(self.trainer.statistics)):
            pass

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
    return f"{reached}, {100 * flops * rate / peak:.1f} %" if peak else f"{reached}; its peak is unknown"


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

    with profile(activities=[ProfilerActivity.CUDA if gpu else ProfilerActivity.CPU]) as profiled:
        finish(step())
    spent = "self_device_time_total" if gpu else "self_cpu_time_total"
    rows = sorted(((getattr(one, spent), one.key) for one in profiled.key_averages()), reverse=True)
    total = sum(time for time, _ in rows) or 1
    yield from (f"{name[:60]} {100 * time / total:.0f} %" for time, name in rows[:most])


def memory(gpu: bool) -> str:
    """Return the peak of this process so far."""
    import torch

    if not gpu:
        return f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"
    used, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    return f"peak {used / 2**30:.2f} GiB allocated, {reserved / 2**30:.2f} GiB reserved"


def determinism(ours: OurSteps, steps: int) -> Iterator[tuple[str, str]]:
    """Yield whether repeated steps give the same bits, with any and with deterministic algorithms."""
    import torch

    begun, taken = ours.trainer.values(), ours.taken
    begun = copy.deepcopy(begun)  # on CPUs they share the memory of the model
    times: dict[str, float] = {}
    for label, exact in (("any algorithms", False), ("deterministic algorithms", True)):
        torch.use_deterministic_algorithms(exact)
        torch.backends.cudnn.benchmark = not exact
        finish(ours())
        ends = []
        for _ in range(2):
            ours.trainer.assign(begun)
            ours.taken = taken
            times[label] = seconds_of(ours, steps)
            ends.append([np.array(weight) for weight in ours.trainer.weights()[0]])
        same = all(np.array_equal(one, other) for one, other in zip(*ends, strict=True))
        cost = f", {times[label] / times['any algorithms']:.2f} x the time" if exact else ""
        yield label, f"{'the same bits' if same else 'other bits'} when repeated{cost}"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
