"""One rank of a plain PyTorch loop, with which `engines.py` and `gpu.py` compare the PyTorch engine.

`python bare_torch.py ERRAND`, as for `bare.py`. The loop follows the advice of PyTorch's documentation:
channels last, autocast, a fused optimizer, DistributedDataParallel for several ranks. It repeats one step
without `torch.compile` on one batch that stays on the device, without loader or metrics. Rank 0 prints
samples per second over all ranks.
"""

import json
import os
import sys
import time
from typing import Any

os.environ.setdefault(
    "KERAS_BACKEND", "torch"
)  # before a task imports Keras, which would take TensorFlow

import numpy as np
import torch
from torch import nn

from scalestudy.tasks.task import DataInfo

WARM_UP = 3
HALVES = {"mixed_bfloat16": torch.bfloat16, "mixed_float16": torch.float16}


def main(errand: dict[str, Any]) -> None:
    from scalestudy.hardware import cores

    torch.set_num_threads(len(cores.granted()))
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    gpu = errand["device"] == "gpu"
    device = torch.device("cuda", local) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
        allowed = errand["precision"] == "tf32"
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = (
            allowed
        )
    if errand["workers"] > 1:
        torch.distributed.init_process_group("nccl" if gpu else "gloo")
    rate = loop(errand, device)
    if rank == 0:
        print("THROUGHPUT", rate, flush=True)
    if errand["workers"] > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def loop(errand: dict[str, Any], device: torch.device) -> float:
    """Samples per second of steps on one batch that stays on the device."""
    stored = np.load(errand["arrays"])
    images, targets = (
        torch.from_numpy(stored[name][: errand["batch"]])
        for name in ("inputs", "targets")
    )
    channels = images.shape[-1] if images.ndim == 4 else 1
    images = images.reshape(*images.shape[:3], channels).to(device)
    targets = targets.to(device)
    module = module_of(errand, tuple(images.shape[1:])).to(
        device, memory_format=torch.channels_last
    )
    optimizer = torch.optim.Adam(module.parameters(), fused=True)
    if errand["workers"] > 1:
        module = nn.parallel.DistributedDataParallel(
            module, [device.index] if device.index is not None else None
        )
    half = HALVES.get(errand["precision"])
    scaler = torch.amp.GradScaler(device.type, enabled=half is torch.float16)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        x = images.permute(0, 3, 1, 2).float() / 255
        with torch.autocast(device.type, half, enabled=half is not None):
            outputs = module(x)
        loss = loss_of(outputs.float(), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    for _ in range(WARM_UP):
        last = step()
    float(last)
    start = time.perf_counter()
    for _ in range(errand["steps"]):
        last = step()
    float(last)
    return (
        errand["batch"]
        * errand["workers"]
        * errand["steps"]
        / (time.perf_counter() - start)
    )


def module_of(errand: dict[str, Any], shape: tuple[int, ...]) -> nn.Module:
    """The module of a built-in task: the same layers as the Keras model of that name."""
    from scalestudy.tasks import torch_cnn, torch_unet

    task = {"unet": torch_unet, "cnn": torch_cnn}[errand["task"].removeprefix("torch_")]
    return task.model(DataInfo(errand["kind"], shape, errand["classes"]))  # type: ignore[attr-defined,no-any-return,arg-type]


def loss_of(logits: Any, targets: Any) -> Any:
    if logits.ndim == 4:
        return nn.functional.binary_cross_entropy_with_logits(
            logits[:, 0], targets.float()
        )
    return nn.functional.cross_entropy(logits, targets.long())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
