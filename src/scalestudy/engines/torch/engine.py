"""PyTorch as an engine: setting up a worker process, and the parts that a run uses."""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import torch
from numpy.typing import NDArray

from scalestudy.config.point import Point
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined
from scalestudy.engines.interface import Engine, StepTrial
from scalestudy.engines.keras.arithmetic import (
    OVERRIDE,
    refuse_other_arithmetic,
    set_seed_and_precision,
)
from scalestudy.engines.keras.export import export_model
from scalestudy.engines.keras.inference import (
    KerasInference,
    build_module,
    open_inference,
)
from scalestudy.engines.keras.model_files import load_model
from scalestudy.engines.keras.private import forbid_downloads, keep_wide_types
from scalestudy.engines.torch.export import export_module
from scalestudy.engines.torch.group import without_exchange
from scalestudy.engines.torch.trainer import TorchTrainer
from scalestudy.hardware.no_gpus import Build, Reason, why_not_listed
from scalestudy.store.model_record import ModelRecord
from scalestudy.util.errors import UserError

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt` (malloc.h)."""


class Torch:
    """The PyTorch engine; see `Engine`."""

    def set_up(
        self,
        point: Point,
        *,
        threads: int,
        device: str,
    ) -> None:
        """Set threads, determinism, seeds and precision, and forbid downloads in workers."""
        precision = point.train.precision
        capability = None
        if device == "gpu" and (names := self.devices(device)):
            # Asked only if there is a GPU: otherwise PyTorch raises an error of its own.
            capability = torch.cuda.get_device_capability()
            refuse_other_architectures(names[0], capability, torch.cuda.get_arch_list())
        refuse_other_arithmetic(precision, device, capability, os.environ.get(OVERRIDE))
        self._device = "cpu"
        if device == "gpu":
            self._device = "cuda:0"
        configure_pytorch(
            threads=threads,
            deterministic=point.train.deterministic,
            tf32=precision == "tf32",
        )
        if device == "cpu":
            keep_memory()
        without_tensorflow()
        # Keras would turn the float64 sums of losses and metrics into float32.
        keep_wide_types()
        set_seed_and_precision(point.seed, precision)
        forbid_downloads()

    def devices(self, device: str) -> list[str]:
        if device == "cpu":
            return ["cpu"]
        gpus = range(torch.cuda.device_count())
        return [torch.cuda.get_device_name(gpu) for gpu in gpus]

    def why_missing(self) -> Reason:
        return why_not_listed(
            Build(f"PyTorch {torch.__version__}", torch.version.cuda),
            None,
        )

    def build_record(self) -> dict[str, Any]:
        cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
        return {"torch": {"cuda_version": torch.version.cuda, "cudnn_version": cudnn}}

    def gpu_memory(self, device: str) -> list[tuple[int | None, int | None]]:
        if device == "cpu":
            return []
        peaks: list[tuple[int | None, int | None]] = []
        for gpu in range(torch.cuda.device_count()):
            allocated = torch.cuda.max_memory_allocated(gpu)
            peaks.append((allocated, torch.cuda.max_memory_reserved(gpu)))
        return peaks

    def trainer(
        self,
        point: Point,
        prepared: Prepared,
        rates: NDArray[np.float64],
        joined: Joined,
    ) -> TorchTrainer:
        return TorchTrainer(point, prepared, rates, joined, self._device)

    def without_exchange(self, joined: Joined) -> Joined:
        return without_exchange(joined)

    def inference(self, path: str, record: ModelRecord) -> KerasInference:
        return open_inference(path, record, torch.no_grad())

    def export(
        self,
        path: str,
        record: ModelRecord,
        out: str,
        form: str,
    ) -> None:
        if path.endswith(".pt") == (form == "keras"):
            raise UserError(
                "--format pt2 or onnx for a PyTorch module, keras for a Keras model",
                repr(form),
                "Choose another --format.",
            )
        if form == "keras":
            export_model(load_model(path, record), record, out, form)
        else:
            export_module(build_module(path, record).model, record, out, form)

    def try_step(
        self,
        compute: Callable[[], tuple[Any, Any]],
        variables: Sequence[Any],
    ) -> StepTrial:
        values = [variable.value for variable in variables]
        objective, losses = compute()
        gradients: Sequence[Any] = [None] * len(values)
        if objective.requires_grad:
            gradients = torch.autograd.grad(
                objective,
                values,
                allow_unused=True,
                retain_graph=True,
            )
        # By identity: tensors compare by value.
        known = {id(value) for value in values}
        stray = None
        for value in _leaves(objective):
            if id(value) not in known:
                stray = f"a parameter of shape {list(value.shape)}"
                break
        reached = [gradient is not None for gradient in gradients]
        return StepTrial(losses.detach().cpu().float().numpy(), reached, stray)


def refuse_other_architectures(
    name: str,
    capability: tuple[int, int],
    architectures: Sequence[str],
) -> None:
    """Reject the GPU `name`, of this compute capability, if PyTorch was built without code for it.

    `architectures` is `torch.cuda.get_arch_list()`. Code of `sm_XY` runs on GPUs of the same major version
    and this or a later minor one, `sm_XYa` on exactly X.Y; the driver compiles `compute_XY` for later ones.

    Raises:
        UserError: No entry fits.
    """
    for architecture in architectures:
        kind, _, number = architecture.partition("_")
        digits = number.rstrip("af")
        built = (0, 0)
        if digits:
            built = (int(digits[:-1]), int(digits[-1]))
        same = built[0] == capability[0]
        if number.endswith("a"):
            same = built == capability
        if built <= capability and (kind == "compute" or (kind == "sm" and same)):
            return
    raise UserError(
        f"a PyTorch with code for {name} (compute capability {capability[0]}.{capability[1]})",
        f"PyTorch {torch.__version__} with code for {', '.join(architectures)}",
        "Install another build in the environment (for GPUs before Turing, one for CUDA 12.6), or set "
        'device = "cpu".',
    )


def configure_pytorch(*, threads: int, deterministic: bool, tf32: bool) -> None:
    """Set threads per operation, determinism, and whether GPUs may multiply in TensorFloat-32."""
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic)
    deterministic_mode: Any = torch.utils.deterministic
    # It costs time, and no uninitialised memory is read.
    deterministic_mode.fill_uninitialized_memory = False
    # It picks kernels by timing, so another run may take others.
    torch.backends.cudnn.benchmark = not deterministic
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32


def keep_memory() -> None:
    """Let glibc keep up to 1 GiB of freed memory, in blocks of up to 32 MiB (its maximum), for the next step.

    By default it returns large tensors to the system, which must zero their pages again in the next step.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    chosen = any(name.startswith("MALLOC_") for name in os.environ)
    if mallopt is not None and not chosen:
        mallopt(M_MMAP_THRESHOLD, 2**25)
        mallopt(M_TRIM_THRESHOLD, 2**30)


def without_tensorflow() -> None:
    """Let Keras find no TensorFlow, which it would import, for seconds, only to set its seed."""
    if "tensorflow" in sys.modules:
        return
    # An import then fails, and Keras asks only once.
    absent: dict[str, Any] = {"tensorflow": None}
    sys.modules.update(absent)
    try:
        keras.utils.set_random_seed(0)
    finally:
        del sys.modules["tensorflow"]


def _leaves(tensor: Any) -> list[Any]:
    nodes = [tensor.grad_fn]
    seen = set[Any]()
    leaves = []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        nodes += [following for following, _ in node.next_functions]
    return leaves


ENGINE: Engine = Torch()
