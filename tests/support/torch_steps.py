"""Steps, devices and modules on PyTorch as JSON: `python torch_steps.py FOLDER`, with KERAS_BACKEND=torch.

Operators and waits are those that a GPU would see: each operator that is no view is a kernel or more, and a
number that is read from a tensor, or a tensor made of a number, waits for the device.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import torch_modules
from scalestudy.cluster.placement import Placement
from scalestudy.data.samples import Slice
from scalestudy.engines.keras.arithmetic import set_seed_and_precision
from scalestudy.engines.torch import group as torch_group
from scalestudy.engines.torch import step as torch_step
from scalestudy.engines.torch.engine import ENGINE, refuse_other_architectures
from scalestudy.engines.torch.trainer import CudaMark
from scalestudy.tasks import torch_cnn, torch_unet
from scalestudy.util.errors import RunError, UserError
from torch_modules import FOLDER, point_of, session

WAITS = ("_local_scalar_dense", "nonzero", "equal", "is_nonzero")
"""Operators that read from the device."""
VIEWS = (
    "view",
    "t",
    "transpose",
    "permute",
    "expand",
    "detach",
    "alias",
    "as_strided",
    "slice",
    "select",
    "split",
    "unsqueeze",
    "squeeze",
    "_unsafe_view",
    "unbind",
    "split_with_sizes",
    "view_as",
    "lift_fresh",
    "_reshape_alias",
)


class Counted(TorchDispatchMode):
    """Counts operators by name."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.operators[func.name().split("::")[1].split(".")[0]] += 1
        return func(*args, **(kwargs or {}))

    @property
    def kernels(self) -> int:
        return sum(count for name, count in self.operators.items() if name not in VIEWS)

    @property
    def waits(self) -> int:
        return sum(self.operators[name] for name in WAITS)


@contextmanager
def copies_of_numbers() -> Any:
    """Yield a list of the numbers that `torch.as_tensor` and `torch.tensor` copy to the device."""
    found: list[Any] = []

    def noting(plain: Callable[..., Any]) -> Callable[..., Any]:
        def noted(data: Any, *args: Any, **words: Any) -> Any:
            if not torch.is_tensor(data):
                found.append(data)
            return plain(data, *args, **words)

        return noted

    with (
        mock.patch.object(torch, "as_tensor", noting(torch.as_tensor)),
        mock.patch.object(torch, "tensor", noting(torch.tensor)),
    ):
        yield found


def call_of(trainer: Any, shape: tuple[int, ...], targets: Any) -> Slice:
    """A call of one step on rows of this shape, on the device already."""
    rows = shape[0]
    inputs = torch.zeros((1, *shape), dtype=torch.uint8)
    return Slice(inputs, targets[None], 0, rows, rows, step=1)


def counted(made: Any, call: Slice) -> dict[str, Any]:
    """Operators and waits of the third step of a session."""
    for _ in range(2):
        float(made.trainer.train((call,)))
    with copies_of_numbers() as numbers, Counted() as seen:
        made.trainer.train((call,))
    return {"kernels": seen.kernels, "waits": seen.waits + len(numbers)}


def plain(module: nn.Module, shape: tuple[int, ...], targets: Any, loss: Any) -> int:
    """Operators of a step that a user of PyTorch would write, with fused Adam."""
    optimizer = torch.optim.Adam(module.parameters(), fused=True)
    images = torch.zeros(shape, dtype=torch.uint8)
    for _ in range(2):
        with Counted() as seen:
            inputs = (images.float() / 255).movedim(-1, 1)
            optimizer.zero_grad()
            loss(module(inputs), targets).backward()
            optimizer.step()
    return seen.kernels


def waits() -> dict[str, Any]:
    """Waits of a step under each optimizer, kind of model and path."""
    own = FOLDER / "plain.py"
    own.write_text(torch_modules.OWN.replace("MOMENTUM", "0.2"))
    keras_model = FOLDER / "of_keras.py"
    keras_model.write_text(
        torch_modules.OF_KERAS.replace(
            "layers.Flatten()",
            "layers.Dropout(0.2), layers.GaussianNoise(0.1), layers.Flatten()",
        )
    )
    targets, found = torch.zeros(32, dtype=torch.int32), {}
    for name in ("sgd", "momentum", "nesterov", "adam", "adamw"):
        for label, task, more in (
            ("module", str(own), {"schedule": "cosine"}),
            ("keras", str(keras_model), {"schedule": "cosine"}),
            ("clipped", str(own), {"clip_norm": 1.0}),
            ("half", str(own), {"precision": "mixed_float16"}),
            (
                "half, clipped",
                str(own),
                {"precision": "mixed_float16", "clip_norm": 1.0},
            ),
            ("accumulated", str(own), {"accumulate": 2}),
        ):
            set_seed_and_precision(0, "float32")
            made = session(task, 1, optimizer=name, **{"precision": "float32", **more})
            found[f"{name} {label}"] = counted(
                made, call_of(made.trainer, (32, 8, 8, 1), targets)
            )["waits"]
    return found


def file_calls() -> list[str]:
    """Calls of the file system by Python between the first and the last step of an epoch, with dropout."""
    found: list[str] = []

    def note(frame: Any, event: str, function: Any) -> None:
        if event == "c_call" and getattr(function, "__module__", "") in (
            "posix",
            "_io",
        ):
            found.append(f"{function.__name__} in {frame.f_code.co_filename}")

    own = FOLDER / "files.py"
    own.write_text(torch_modules.OWN.replace("MOMENTUM", "0.2"))
    made = session(str(own), 2, precision="float32", epochs=2)
    train = made.trainer.train
    steps: list[int] = []

    def noting(call: Any) -> Any:
        sys.setprofile(note)
        steps.extend(range(call[0].steps))
        total = train(call)
        if len(steps) == made.steps * made.epochs:
            sys.setprofile(None)
        return total

    epochs = made.epoch_records()
    next(epochs)
    steps.extend(range(made.steps))
    made.trainer.train = noting
    list(epochs)
    assert len(steps) == made.steps * made.epochs > 4
    return found


def kernels() -> dict[str, Any]:
    """Operators of a step of the built-in modules, beside those of a plain loop."""
    set_seed_and_precision(0, "float32")
    data = torch_modules.info("classes", (8, 8, 1), 10)
    targets = torch.zeros(32, dtype=torch.int64)
    made = session("torch_cnn", 1, precision="float32", optimizer="adam")
    ours = counted(made, call_of(made.trainer, (32, 8, 8, 1), targets))
    by_hand = plain(
        torch_cnn.model(data), (32, 8, 8, 1), targets, nn.CrossEntropyLoss()
    )
    return {
        "cnn": [ours["kernels"], by_hand],
        "unet": unet_kernels("torch_unet"),
        "keras unet": unet_kernels("unet"),
    }


def unet_kernels(task: str) -> list[int]:
    prepared = torch_modules.prepare(
        torch_modules.data_of("indents:8", image_size=(32, 32), cache=FOLDER)
    )
    point = point_of(task, 1, precision="float32", optimizer="adam", learning_rate=1e-3)
    joined = torch_modules.join(
        "torch-virtual", torch_modules.ALONE, workers=1, device="cpu"
    )
    split = torch_modules.ensure_split(prepared, 0.25, 0)
    made = torch_modules.Session(
        point, ENGINE, joined, prepared, split, torch_modules.PhaseClock()
    )
    masks = torch.zeros((4, 32, 32), dtype=torch.uint8)
    ours = counted(made, call_of(made.trainer, (4, 32, 32, 1), masks))

    def loss(outputs: Any, targets: Any) -> Any:
        return nn.functional.binary_cross_entropy_with_logits(
            outputs[:, 0], targets.float()
        )

    module = torch_unet.model(torch_modules.info("masks", (32, 32, 1), 2))
    return [ours["kernels"], plain(module, (4, 32, 32, 1), masks, loss)]


def evaluation() -> int:
    """Waits of the evaluation of a batch."""
    set_seed_and_precision(0, "float32")
    made = session("torch_cnn", 1, precision="float32", metrics=["accuracy"])
    call = (call_of(made.trainer, (32, 8, 8, 1), torch.zeros(32, dtype=torch.int32)),)
    first = made.trainer.evaluate(call)
    with copies_of_numbers() as numbers, Counted() as seen:
        again = made.trainer.evaluate(call)
    total = made.trainer.arrays(
        [one + other for one, other in zip(first, again, strict=True)]
    )
    assert total[1] == 64 and made.trainer.results(total)["loss"] > 0
    return seen.waits + len(numbers)


GROUPS = """

def optimizer(model, rate):
    norms = [p for p in model.parameters() if p.ndim == 1]
    others = [p for p in model.parameters() if p.ndim > 1]
    groups = [{"params": norms, "weight_decay": 0.0}, {"params": others, "lr": 2 * rate}]
    return KIND

def scheduler(optimizer, steps, epochs):
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.01, 0.02], total_steps=steps)
"""


def own_optimizers() -> dict[str, Any]:
    """Runs with a task's own optimizer and scheduler beside a plain loop; resumed runs beside whole ones."""
    kinds = (
        "AdamW(groups, lr=rate, weight_decay=0.1)",
        "SGD(groups, lr=rate, momentum=0.8, dampening=0.5)",
    )
    return {kind[:3]: own_optimizer(kind) for kind in kinds}


def own_optimizer(kind: str) -> dict[str, Any]:
    own = FOLDER / f"{kind[:3].lower()}_own.py"
    text = torch_modules.OWN.replace("norm, nn.ReLU(), nn.Dropout2d(0.3)", "nn.ReLU()")
    own.write_text(
        text.replace("MOMENTUM", "0.2") + GROUPS.replace("KIND", f"torch.optim.{kind}")
    )
    set_seed_and_precision(0, "float64")
    made = session(str(own), 2)
    names: dict[str, Any] = {}
    exec(compile(own.read_text(), str(own), "exec"), names)
    module = names["model"](torch_modules.info("classes", (8, 8, 1), 10)).double()
    module.load_state_dict(made.trainer.task.model.module.state_dict())
    optimizer = names["optimizer"](module, 0.05)
    scheduler = names["scheduler"](optimizer, made.steps * made.epochs, made.epochs)
    rates, train = [], made.trainer.train

    def both(call: Any) -> Any:
        (part,) = call
        images, labels = (torch.as_tensor(side) for side in (part.inputs, part.targets))
        for index in range(part.steps):
            optimizer.zero_grad()
            inputs = (images[index].double() / 255).movedim(-1, 1)
            nn.functional.cross_entropy(module(inputs), labels[index].long()).backward()
            optimizer.step()
            scheduler.step()
        total = train(call)
        rates.append(
            [group["lr"] for group in made.trainer.optimizer.inner.param_groups]
        )
        return total

    made.trainer.train = both
    epochs = made.epoch_records()
    next(epochs)
    values = made.trainer.state.values()
    middle = type(values)(*([np.copy(value) for value in side] for side in values))
    list(epochs)
    again = session(str(own), 2)
    following = again.epoch_records()
    next(following)
    again.trainer.state.assign(middle)
    list(following)
    ours, resumed = (
        each.trainer.task.model.module.state_dict() for each in (made, again)
    )
    return {
        "plain": max(
            torch_modules.difference(ours[key], value)
            for key, value in module.state_dict().items()
        ),
        "resumed": max(
            torch_modules.difference(ours[key], value) for key, value in resumed.items()
        ),
        "rates": [len({rate[0] for rate in rates}), rates[0][1] / rates[0][0]],
    }


def compiled() -> dict[str, int]:
    """Graphs that dynamo makes of the built-in modules in a training step, seen without compiling them."""
    of_cnn = torch_modules.info("classes", (8, 8, 1), 10)
    of_unet = torch_modules.info("masks", (32, 32, 1), 2)
    return {
        "torch_cnn": graphs_of(torch_cnn, of_cnn),
        "torch_unet": graphs_of(torch_unet, of_unet),
    }


def last_batches() -> list[bool]:
    """Whether each graph of a compiled module has a fixed batch, if an uneven batch is compiled first."""
    torch._dynamo.reset()
    set_seed_and_precision(0, "float32")
    fixed: list[bool] = []

    def backend(graph: Any, inputs: Any) -> Any:
        fixed.append(not any(isinstance(given, torch.SymInt) for given in inputs))
        return graph.forward

    data = torch_modules.info("classes", (8, 8, 1), 10)
    model = torch_modules.task_of(torch_cnn, data, torch_modules.TRAIN).model
    with mock.patch.object(torch, "compile", partial(torch.compile, backend=backend)):
        made = model.compiled()
    for rows in (3, 8, 8, 3):
        made(torch.rand(rows, *data.input_shape), training=True)
    return fixed


BRANCHES = """

class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other, self.calls = nn.Linear(64, 10), nn.Linear(64, 10), 0

    def forward(self, x):
        self.calls += 1
        return (self.other if self.calls % 2 else self.one)(x.flatten(1))

def model(data):
    return Branches()
"""


def exchanged() -> dict[str, Any]:
    """Steps that sum gradients by DistributedDataParallel, in a process group of one."""
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    found: dict[str, Any] = {}
    taken: list[Any] = []
    wrapped = torch_step.DistributedDataParallel

    def wrap(loss: Any, **words: Any) -> Any:
        taken.append(words["bucket_cap_mb"])
        return wrapped(loss, **words)

    own = FOLDER / "branches.py"
    own.write_text(torch_modules.OWN.replace("MOMENTUM", "0.2") + BRANCHES)
    plain = str(FOLDER / "plain.py")
    cases: dict[str, tuple[str, str, dict[str, Any]]] = {
        "auto": (plain, "auto", {}),
        "auto, compiled": (plain, "auto", {"compile": True}),
        "all, compiled": (plain, "all", {"compile": True}),
        "64 KiB": (plain, "64 KiB", {}),
        "branches": (str(own), "auto", {}),
        "branches, searched": (str(own), "auto", {"find_unused_parameters": True}),
    }
    with (
        mock.patch.object(torch_step, "DistributedDataParallel", wrap),
        mock.patch.object(torch, "compile", partial(torch.compile, backend="eager")),
        mock.patch.object(torch_modules, "join", exchanging(torch_modules.join)),
    ):
        for label, (task, size, train) in cases.items():
            torch._dynamo.reset()
            set_seed_and_precision(0, "float32")
            found[label] = exchanged_steps(
                task, size, {"precision": "float32", **train}, taken
            )
    torch.distributed.destroy_process_group()
    return found


def exchanging(plain: Callable[..., Any]) -> Callable[..., Any]:
    def joined(*args: Any, **words: Any) -> Any:
        made = plain(*args, **words)
        made.replicas.exchanges = True
        return made

    return joined


def exchanged_steps(
    task: str, size: str, train: dict[str, Any], taken: list[Any]
) -> Any:
    """The cap of the buckets and how many epochs were computed; of a failure, its message."""
    taken.clear()
    try:
        epochs = list(session(task, 1, bucket_size=size, **train).epoch_records())
    except RunError as error:
        return [error.received, error.action]
    return [taken[-1], len(epochs)]


def graphs_of(task: Any, data: Any) -> int:
    torch._dynamo.reset()
    set_seed_and_precision(0, "float32")
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    model = torch_modules.task_of(task, data, torch_modules.TRAIN).model
    torch_modules.adapt_model(model, seed=0, sync_batch_norm=False)
    with mock.patch.object(torch, "compile", partial(torch.compile, backend=backend)):
        made = model.compiled()
    for _ in range(2):
        made(torch.rand(2, *data.input_shape), training=True)
    return len(graphs)


def devices() -> dict[str, Any]:
    """What PyTorch says of its GPUs, with stand-ins for them."""

    def refused(
        capability: tuple[int, int], architectures: list[str]
    ) -> list[str] | None:
        try:
            refuse_other_architectures("GPU", capability, architectures)
        except UserError as error:
            return [error.expected, error.received, error.action]
        return None

    usual = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]
    cases = (
        *(
            ((8, 0), usual),
            ((8, 9), usual),
            ((12, 1), usual),
            ((13, 0), usual),
        ),  # the last by PTX
        *(
            ((7, 0), usual),
            ((11, 0), usual),
            ((13, 0), usual[:-1]),
            ((8, 0), ["sm_86"]),
        ),
        *(
            ((9, 0), ["sm_90a"]),
            ((10, 3), ["sm_100a"]),
            ((10, 3), ["sm_100f"]),
            ((9, 0), ["gfx90a"]),
        ),
    )
    found: dict[str, Any] = {"refused": [refused(*case) is not None for case in cases]}
    found["message"] = refused((7, 0), usual)
    gpus = {
        "device_count": 2,
        "get_device_capability": (7, 0),
        "get_device_name": "Tesla V100",
    }
    peaks = {"max_memory_allocated": [70, 20], "max_memory_reserved": [80, 90]}
    with ExitStack() as kept:
        for name, value in {**gpus, "get_arch_list": usual}.items():
            kept.enter_context(mock.patch(f"torch.cuda.{name}", return_value=value))
        for name, of in peaks.items():
            kept.enter_context(
                mock.patch(f"torch.cuda.{name}", side_effect=of.__getitem__)
            )
        found["memory"] = [ENGINE.gpu_memory("gpu"), ENGINE.gpu_memory("cpu")]
        try:
            ENGINE.set_up(
                point_of("torch_cnn", 1, precision="float32"), threads=1, device="gpu"
            )
        except UserError as error:
            found["set up"] = error.expected
    found["group"] = [of_group(device) for device in ("gpu", "cpu")]
    with (
        mock.patch("torch.cuda.Event") as event,
        mock.patch("torch.cuda.current_stream"),
    ):
        CudaMark(torch.device("cuda:0"))
    found["event"] = event.call_args.kwargs
    return found


def of_group(device: str) -> str:
    """The device to which a process of two binds its group."""
    with (
        mock.patch.object(torch_group, "meeting_address", return_value="localhost"),
        mock.patch.object(torch_group, "interface_of", return_value=None),
        mock.patch("torch.distributed.TCPStore"),
        mock.patch("torch.distributed.init_process_group") as made,
    ):
        torch_group._meet(
            Placement(1, 2, 0, 1, 1, ("one", "other"), "test", 20_000), device
        )
    return str(made.call_args.kwargs["device_id"])


PARTS = (
    "waits",
    "file_calls",
    "kernels",
    "evaluation",
    "own_optimizers",
    "compiled",
    "last_batches",
    "exchanged",
    "devices",
)

if __name__ == "__main__":
    ENGINE.set_up(point_of("torch_cnn", 1), threads=1, device="cpu")
    answers = {}
    for part in PARTS:
        answers[part] = globals()[part]()
    for part in torch_modules.PARTS:
        set_seed_and_precision(0, "float64" if part == "optimizers" else "float32")
        answers[part] = getattr(torch_modules, part)()
    Path(FOLDER, "answers.json").write_text(json.dumps(answers))
