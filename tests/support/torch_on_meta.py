"""Whole runs on PyTorch's meta device: `python torch_on_meta.py FOLDER [NAME ...]`, KERAS_BACKEND=torch.

For each case of `meta_cases.py` it writes what a GPU would have to wait for: numbers that are read from the
device, and numbers or pageable arrays that are copied to it, each with the line that asks.
"""

import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import torch
from keras.src.backend.common import global_state
from keras.src.backend.torch import random as keras_random
from torch.utils._python_dispatch import TorchDispatchMode

from data_settings import data_of
from linear import ALONE
from meta_cases import DATA, Case, cases
from scalestudy.config.point import Point
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import join
from scalestudy.engines.keras.arithmetic import set_seed_and_precision
from scalestudy.engines.keras.private import keep_wide_types
from scalestudy.engines.torch import optimizers
from scalestudy.engines.torch.engine import ENGINE, without_tensorflow
from scalestudy.measure.clock import PhaseClock
from scalestudy.tasks import label_losses
from scalestudy.training.session import Session

FOLDER = Path(sys.argv[1])
READS = (
    "_local_scalar_dense",
    "nonzero",
    "equal",
    "is_nonzero",
    "masked_select",
    "_unique2",
)
"""Operators that wait for a GPU to learn a value or a shape."""
IN_PLACE = ("_fused_", "_amp_")
"""Starts of the names of kernels that change their arguments and lack a version for meta."""
EPOCHS, BATCH, IMAGES = 2, 5, 13
SIZE = (12, 12)

MODULE = """
import torch
from torch import nn
engine, loss, metrics, pretrained = "torch", "bce", ["accuracy"], ["0", "1"]

def model(data):
    first = nn.Conv2d(1, 6, 3, padding="same"), nn.BatchNorm2d(6), nn.ReLU(), nn.Dropout2d(0.3)
    if data.kind == "masks":
        return nn.Sequential(*first, nn.Conv2d(6, CHANNELS, 1))
    return nn.Sequential(*first, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6 * 36, CHANNELS))
"""
KERAS = """
import keras
from keras import layers
engine, loss, metrics, pretrained = "torch", "bce", ["accuracy"], ["0", "1"]

def model(data):
    first = layers.Conv2D(6, 3, padding="same", name="0"), layers.BatchNormalization(name="1")
    body = [*first, layers.ReLU(), layers.Dropout(0.3)]
    body += [] if data.kind == "masks" else [layers.MaxPooling2D(2), layers.Flatten()]
    last = layers.Conv2D(CHANNELS, 1) if data.kind == "masks" else layers.Dense(CHANNELS)
    kind = None if keras.config.floatx() == "float64" else "float32"
    end = layers.Activation("sigmoid" if CHANNELS == 1 else "softmax", dtype=kind)
    return keras.Sequential([keras.Input(data.input_shape), *body, last, end])
"""


class Device(TorchDispatchMode):
    """Lets the meta device be read, as zeros, and notes each place that waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name, given = func.name().split("::")[1].split(".")[0], dict(kwargs or {})
        tensors = [arg for arg in args if torch.is_tensor(arg)]
        on_meta = any(tensor.is_meta for tensor in tensors)
        if name.startswith(IN_PLACE):
            return args[0] if name == "_amp_update_scale_" else None
        if name in READS and on_meta:
            self.note(name)
            return 0 if name == "_local_scalar_dense" else torch.zeros(0)
        if (
            name == "_to_copy"
            and on_meta
            and torch.device(given.get("device") or "meta").type == "cpu"
        ):
            self.note("read of a tensor")
            return torch.zeros(
                tensors[0].shape, dtype=given.get("dtype") or tensors[0].dtype
            )
        to_meta = torch.device(given.get("device") or "cpu").type == "meta"
        if (
            name == "_to_copy"
            and not on_meta
            and to_meta
            and not given.get("non_blocking")
        ):
            self.note("copy of an array")
        if name == "copy_" and tensors[0].is_meta != tensors[1].is_meta:
            self.note("copy between devices")
            if not tensors[0].is_meta:
                return tensors[0].zero_()
        return func(*args, **given)

    def note(self, what: str) -> None:
        frames = (frame for frame, _ in traceback.walk_stack(None))
        ours = next(
            (frame for frame in frames if "/scalestudy/" in frame.f_code.co_filename),
            None,
        )
        where = (
            f"{Path(ours.f_code.co_filename).name}:{ours.f_lineno}"
            if ours
            else "a framework"
        )
        self.waits[f"{what} at {where}"] += 1


@contextmanager
def on_meta() -> Iterator[Device]:
    """Compute on the meta device in the block: what Keras creates, and fused optimizers.

    It has neither autocast nor generators.

    A name as the device would make Keras take tensors on it for symbols of its own.
    """
    device, fused = Device(), [*optimizers.FUSED, "meta"]
    global_state.set_global_attribute("torch_device", torch.device("meta"))
    with ExitStack() as kept:
        for patch in (
            mock.patch.object(optimizers, "FUSED", fused),
            mock.patch(
                "torch.optim.optimizer._get_fused_kernels_supported_devices",
                return_value=fused,
            ),
            mock.patch(
                "torch.utils._foreach_utils._get_foreach_kernels_supported_devices",
                return_value=fused,
            ),
            mock.patch.object(torch, "autocast", return_value=nullcontext()),
            mock.patch.object(keras_random, "torch_seed_generator", return_value=None),
            device,
            copies_noted(device),
        ):
            kept.enter_context(patch)
        yield device
    global_state.set_global_attribute("torch_device", None)


@contextmanager
def copies_noted(device: Device) -> Iterator[None]:
    """Note the numbers that `torch.as_tensor` and `torch.tensor` copy to the device."""

    def noting(plain: Callable[..., Any]) -> Callable[..., Any]:
        def noted(data: Any, *args: Any, **words: Any) -> Any:
            made = plain(data, *args, **words)
            if (
                isinstance(data, bool | int | float) and made.is_meta
            ):  # arrays are copied by an operator
                device.note("copy of a number")
            return made

        return noted

    with (
        mock.patch.object(torch, "as_tensor", noting(torch.as_tensor)),
        mock.patch.object(torch, "tensor", noting(torch.tensor)),
    ):
        yield


@cache
def data_set(name: str) -> Prepared:
    """A set of random images; masks are padded with ignored pixels if its name says so."""
    rng, file = np.random.default_rng(0), FOLDER / f"{name.replace(' ', '-')}.npz"
    images = rng.integers(0, 256, (IMAGES, *SIZE), np.uint8)
    kept: dict[str, Any] = {}
    if name.startswith("masks"):
        targets = rng.integers(0, DATA[name], (IMAGES, *SIZE)).astype(np.uint8)
        kept = {"image_size": (SIZE[0] + 2, SIZE[1] + 4)} if "ignored" in name else {}
    else:
        targets = np.arange(IMAGES) % DATA[name]
    np.savez(file, x_train=images, y_train=targets)
    return prepare(data_of(file, cache=FOLDER, **kept))


def session_of(case: Case) -> Session:
    prepared, strategy = data_set(case.data), case.strategy[0]
    classes = prepared.classes
    channels = 1 if classes == 2 and case.model == "module" else classes
    task = FOLDER / f"{case.model}-{channels}.py"
    task.write_text(
        (MODULE if case.model == "module" else KERAS).replace("CHANNELS", str(channels))
    )
    train = {
        "epochs": EPOCHS,
        "evaluate_every": EPOCHS,
        "batch_size": BATCH,
        "batch": "global",
        "optimizer": "momentum",
        "learning_rate": 0.01,
        "schedule": "cosine",
        **case.train,
    }
    split = ensure_split(prepared, 0.3, 0)
    point = Point.model_validate(
        {
            "name": "test",
            "study": "test",
            "task": str(task),
            "engine": "torch",
            "strategy": strategy,
            "terms": {"implementation": strategy},
            "workers": case.strategy[1],
            "seed": 0,
            "train": train,
            "data": {"source": "digits"},
        }
    ).with_files(
        "", "", tuple(1.0 + each for each in range(classes)) if case.weighted else None
    )
    set_seed_and_precision(0, point.train.precision)
    joined = join(strategy, ALONE, workers=case.strategy[1], device="cpu")
    return Session(point, ENGINE, joined, prepared, split, PhaseClock())


def counted(case: Case) -> dict[str, Any]:
    """Waits of all steps but those of the first epoch, and of one evaluation; constants made for that."""
    found: dict[str, Any] = {"steps": 0}
    with on_meta() as device:
        made = session_of(case)
        train, measure = made.trainer.train, made.measure
        steps: Counter[str] = Counter()

        def watched(call: Any) -> Any:
            device.waits.clear()
            total = train(call)
            if call[0].step >= made.steps:
                found["steps"] += call[0].steps
                steps.update(device.waits)
            return total

        def measured(samples: Any) -> Any:
            device.waits.clear()
            made._evaluating = (
                False  # so that the statistics of batch normalisation count, too
            )
            known = label_losses._on_device.cache_info().misses
            with made.evaluating():
                results = measure(samples)
            found["evaluation"] = dict(device.waits)
            found["constants"] = label_losses._on_device.cache_info().misses - known
            return results

        made.trainer.train, made.measure = watched, measured
        list(made.epoch_records())
    return found | {"step": steps}


INITIALIZERS = (
    "zeros",
    "ones",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "variance_scaling",
    "orthogonal",
    "identity",
)


def initial_values() -> dict[str, Any]:
    """What each initialiser of Keras returns."""
    found: dict[str, Any] = {}
    with on_meta():
        for name in INITIALIZERS:
            made = keras.initializers.get(name)((6, 6), dtype="float32")
            found[name] = [str(made.device), list(made.shape)]
    return found


def answers(names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for name, case in cases().items():
        if names and not any(part in name for part in names):
            continue
        try:
            yield name, counted(case)
        except Exception as error:  # a case that fails is an answer
            global_state.set_global_attribute("torch_device", None)
            last = "".join(traceback.format_exception(error)[-6:])
            yield name, {"error": f"{type(error).__name__}: {error}\n{last}"}


if __name__ == "__main__":
    without_tensorflow()
    keep_wide_types()
    ENGINE._device = "meta"  # as `set_up` names a GPU
    found = dict(answers(sys.argv[2:]))
    Path(FOLDER, "answers.json").write_text(
        json.dumps({"cases": found, "initial": initial_values()})
    )
