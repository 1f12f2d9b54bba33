"""Results of PyTorch modules; see `torch_steps.py`, which prints them."""

import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import numpy as np
import torch
from torch import nn

from data_settings import data_of
from few_digits import few_digits
from linear import ALONE
from scalestudy.config.point import Point
from scalestudy.config.settings import ResolvedTrain
from scalestudy.data.preparation import prepare
from scalestudy.data.samples import Column, Slice
from scalestudy.data.split import ensure_split
from scalestudy.engines.group import join
from scalestudy.engines.keras.arithmetic import set_seed_and_precision
from scalestudy.engines.keras.layer_context import Working, working
from scalestudy.engines.keras.phases import flops_of
from scalestudy.engines.torch.engine import ENGINE
from scalestudy.engines.torch.layers import adapt_model, batch_norms
from scalestudy.engines.torch.optimizers import make_optimizer
from scalestudy.engines.torch.running_statistics import RunningStatistics
from scalestudy.measure.clock import PhaseClock
from scalestudy.store.model_record import ModelRecord
from scalestudy.tasks import cnn, torch_cnn, torch_unet, unet
from scalestudy.tasks.load import task_of
from scalestudy.tasks.module import ModuleModel, note_on_logits
from scalestudy.tasks.task import DataInfo, of_images
from scalestudy.training.session import Session
from scalestudy.training.set_evaluation import statistics_samples
from scalestudy.util.errors import UserError

FOLDER = Path(sys.argv[1])
TRAIN = ResolvedTrain.model_validate(
    {
        "epochs": 1,
        "batch_size": 8,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "schedule": "constant",
    }
)


def info(kind: str, shape: tuple[int, int, int], classes: int, **more: Any) -> DataInfo:
    return DataInfo(
        kind,
        shape,
        classes,
        more.get("ignore"),
        (),
        None,
        *of_images(kind, shape, classes),
    )


def task_file(data: DataInfo, **names: Any) -> Any:
    """The task of a task file with these names."""
    module = ModuleType("own")
    vars(module).update({"__file__": "own.py", "metrics": ["accuracy"], **names})
    return task_of(module, data, TRAIN)


def difference(one: Any, other: Any) -> float:
    return float(
        (torch.as_tensor(one).double() - torch.as_tensor(other).double()).abs().max()
    )


def take_over(net: nn.Module, model: keras.Model) -> None:
    """Copy the weights of a Keras model with the same architecture into a module."""
    if isinstance(net, torch_unet.UNet):
        pairs = zip(net.up, net.decoder, strict=True)
        parts = [
            *net.encoder,
            net.bridge,
            *(part for pair in pairs for part in pair),
            net.head,
        ]
        layers = [layer for part in parts for layer in part.modules()]
    else:
        layers = list(net.modules())
    weights = iter(model.get_weights())
    spatial = next(
        (layer.output.shape[1:] for layer in model.layers if "pool" in layer.name), None
    )
    for layer in layers:
        for name in ("weight", "bias", "running_mean", "running_var"):
            if getattr(layer, name, None) is None:
                continue
            value = torch.tensor(next(weights))
            if value.ndim == 4:
                value = value.permute(3, 2, 0, 1)
            elif value.ndim == 2:
                if spatial is not None and len(value) == np.prod(
                    spatial
                ):  # flattened channels first
                    value = value.view(*spatial, -1).permute(2, 0, 1, 3).flatten(0, 2)
                value = value.T
            with torch.no_grad():
                getattr(layer, name).copy_(value)


def architectures() -> dict[str, Any]:
    """Compare the built-in modules with the Keras models of the same names."""
    found = {}
    for name, ours, keras_task, data in (
        ("unet", torch_unet, unet, info("masks", (40, 56, 1), 2, ignore=255)),
        ("unet of 4 classes", torch_unet, unet, info("masks", (32, 32, 3), 4)),
        ("cnn", torch_cnn, cnn, info("classes", (12, 12, 1), 10)),
    ):
        one, other = task_of(ours, data, TRAIN), task_of(keras_task, data, TRAIN)
        take_over(one.model.module, other.model)
        images = torch.rand(3, *data.input_shape)
        targets = torch.randint(
            0,
            data.classes,
            (3, *data.input_shape[:2])[: 3 if data.kind == "masks" else 1],
        )
        quality = next(iter(one.metrics))
        values = []
        with torch.no_grad():
            for task in (one, other):
                outputs, metric = (
                    task.model(images, training=False),
                    task.metrics[quality],
                )
                metric.update_state(*task.seen_by(quality, targets, outputs))
                shown = task.model.probabilities(outputs) if task is one else outputs
                values.append((shown, task.loss(targets, outputs), metric.result()))
        # Training mode; both frameworks drop by the same numbers, of values that lie differently.
        trained = []
        for task in (one, other):
            adapt_model(task.model, seed=3, sync_batch_norm=False)
            torch.manual_seed(0)
            with working(Working(Slice(None, None, 4, 3, 9, step=5), 1 / 3)):
                outputs = task.model(images, training=True)
            trained.append(
                task.model.probabilities(outputs) if task is one else outputs
            )
        found[name] = {
            "parameters": [task.model.count_params() for task in (one, other)],
            "flops": [
                flops_of(task.model, task.trained).per_sample for task in (one, other)
            ],
            "differences": [difference(a, b) for a, b in zip(*values, strict=True)],
            "training": difference(*(values.detach() for values in trained)),
        }
    return found


def optimizers() -> dict[str, float]:
    """Difference between optimizers by name and those of `torch.optim` with its own constants."""
    found = {}
    for name, kind, words in (
        ("sgd", torch.optim.SGD, {}),
        ("momentum", torch.optim.SGD, {"momentum": 0.9}),
        ("nesterov", torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        ("adam", torch.optim.Adam, {}),
        ("adamw", torch.optim.AdamW, {}),
    ):
        torch.manual_seed(0)
        first = torch.randn(50, dtype=torch.float64)
        ours, theirs = nn.Parameter(first.clone()), nn.Parameter(first.clone())
        optimizer = make_optimizer(name, [ours], 0.01)
        other = kind([theirs], lr=0.01, **words)
        for _ in range(9):
            ours.grad = theirs.grad = torch.randn(50, dtype=torch.float64)
            optimizer.step()
            other.step()
        found[name] = difference(ours.detach(), theirs.detach())
    return found


def refused(**names: Any) -> str:
    try:
        task_file(info("classes", (4, 4, 1), 3), **names)
    except UserError as error:
        return error.received
    return ""


def objectives() -> dict[str, Any]:
    """Losses and metrics of PyTorch beside ours by name."""
    torch.manual_seed(0)

    def net(data: Any) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(16, 3))

    def own(targets: Any, outputs: Any) -> Any:
        return nn.functional.cross_entropy(outputs, targets, reduction="none")

    data, images = info("classes", (4, 4, 1), 3), torch.rand(5, 4, 4, 1)
    targets = torch.tensor([0, 1, 2, 2, 1], dtype=torch.int32)
    given = {
        "name": "cross_entropy",
        "object": nn.CrossEntropyLoss(),
        "class": nn.CrossEntropyLoss,
        "function": nn.functional.cross_entropy,
        "own": own,
        "of the data": lambda data: nn.CrossEntropyLoss(),
    }
    losses = {}
    for name, loss in given.items():
        torch.manual_seed(1)
        task = task_file(data, model=net, loss=loss)
        losses[name] = task.loss(targets, task.model(images)).tolist()
    masks = info("masks", (8, 8, 1), 2)
    labels = torch.randint(0, 2, (2, 8, 8), dtype=torch.uint8)
    pixels = {}
    for name, loss in (("name", "bce"), ("object", nn.BCEWithLogitsLoss())):
        torch.manual_seed(1)
        task = task_file(
            masks,
            model=lambda data: nn.Conv2d(1, 1, 3, padding=1),
            loss=loss,
            metrics=["iou"],
        )
        pixels[name] = task.loss(labels, task.model(torch.ones(2, 8, 8, 1))).tolist()
    ends = {"net": net, "soft": lambda data: nn.Sequential(net(data), nn.Softmax(1))}
    notes = {}
    for name, logits in (
        ("net", True),
        ("soft", True),
        ("soft", False),
        ("net", False),
    ):
        task = task_file(data, model=ends[name], loss="cross_entropy", logits=logits)
        try:
            notes[f"{name} {logits}"] = len(
                note_on_logits(
                    task.model, task.model(images * 50), "cross_entropy", "own.py"
                )
            )
        except UserError:
            notes[f"{name} {logits}"] = "refused"
    for name, loss, logits in (
        ("net", nn.CrossEntropyLoss(), True),
        ("soft", nn.CrossEntropyLoss, False),
        ("soft", nn.functional.cross_entropy, True),
    ):
        task = task_file(data, model=ends[name], loss=loss, logits=logits)
        kind = getattr(loss, "__name__", type(loss).__name__)
        noted = note_on_logits(task.model, task.model(images * 50), loss, "own.py")
        notes[f"{name} {kind}"] = [kind in note for note in noted]
    for name, end in (("small", nn.Identity()), ("sigmoid", nn.Sigmoid())):
        last = nn.Conv2d(1, 1, 3, padding=1)
        nn.init.constant_(last.weight, 0.01)
        nn.init.constant_(last.bias, 0.1)
        task = task_file(
            masks,
            model=lambda data, ends=(last, end): nn.Sequential(*ends),
            loss="bce",
            metrics=["iou"],
        )
        notes[name] = len(
            note_on_logits(
                task.model, task.model(torch.ones(2, 8, 8, 1)), "bce", "own.py"
            )
        )
    return {
        "losses": losses,
        "pixels": pixels,
        "notes": notes,
        "class": refused(model=lambda data: nn.Linear, loss="cross_entropy"),
        "metric": refused(
            model=net, loss="cross_entropy", metrics=["accuracy", nn.Linear(1, 1)]
        ),
        "wrapped": [
            refused(
                model=lambda data, wrap=wrap: nn.Sequential(wrap(net(data))),
                loss="cross_entropy",
            )
            for wrap in (torch.compile, torch.jit.script, nn.DataParallel)
        ],
        "lazy": lazy_parameters(data),
        "latent flops": latent_flops(data),
        "averaged flops": averaged_flops(data),
        "reached": detached(),
        "arguments": two_arguments(),
        "width": refused(model=lambda data: nn.Linear(7, 3), loss="cross_entropy"),
    }


class TwoArguments(nn.Module):
    """Takes two inputs by name instead of one dictionary."""

    def forward(self, a: Any, b: Any) -> Any:
        return a + b


def two_arguments() -> str:
    columns = {name: Column((3,), "float32", 0.0, 1.0) for name in "ab"}
    words: dict[str, Any] = {
        "kind": "custom",
        "precision": "float32",
        "logits": True,
        "file": "own.py",
    }
    try:
        ModuleModel(TwoArguments(), columns, **words)
    except UserError as error:
        return error.action
    return ""


def lazy_parameters(data: DataInfo) -> int:
    """Parameters of a module whose input shape is set by its first batch."""
    module = nn.Sequential(nn.Flatten(), nn.LazyLinear(3))
    return task_file(
        data, model=lambda data: module, loss="cross_entropy"
    ).model.count_params()


class Latents(nn.Module):
    """Passes a parameter to a submodule as its input."""

    def __init__(self) -> None:
        super().__init__()
        self.latent, self.inner = nn.Parameter(torch.ones(1, 4)), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return x.flatten(1).mean(1, keepdim=True) + self.inner(self.latent)


class Averaged(nn.Module):
    """Evaluates by a copy of its layer, which training does not change by gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.average = (
            nn.Linear(1, 3),
            nn.Linear(1, 3).requires_grad_(False),
        )

    def forward(self, x: Any) -> Any:
        with torch.set_grad_enabled(self.training):
            return (self.layer if self.training else self.average)(x.mean((2, 3)))


def averaged_flops(data: DataInfo) -> Any:
    task = task_file(data, model=lambda data: Averaged(), loss="cross_entropy")
    return flops_of(task.model, task.trained)


def latent_flops(data: DataInfo) -> float | None:
    task = task_file(data, model=lambda data: Latents(), loss="cross_entropy")
    return flops_of(task.model, task.trained).per_sample


def detached() -> list[bool]:
    """Whether each weight is reported as reached by a loss that does not depend on it."""
    losses, weight = torch.ones(2), keras.Variable(torch.ones(2))
    return ENGINE.try_step(lambda: (losses.sum(), losses), [weight]).reached


@cache
def digits() -> tuple[Any, Any]:
    prepared = prepare(data_of(few_digits(FOLDER, 100), cache=FOLDER))
    return prepared, ensure_split(prepared, 0.3, 0)


def point_of(task: str, workers: int, bucket_size: str = "auto", **train: Any) -> Point:
    settings = {
        "epochs": 2,
        "batch_size": 32,
        "batch": "global",
        "optimizer": "momentum",
        "learning_rate": 0.05,
        "schedule": "constant",
        "precision": "float64",
        **train,
    }
    return Point.model_validate(
        {
            "name": "test",
            "study": "test",
            "task": task,
            "engine": "torch",
            "strategy": "torch-virtual",
            "terms": {
                "implementation": "torch-virtual",
                "launch": {"bucket_size": bucket_size},
            },
            "workers": workers,
            "seed": 0,
            "train": settings,
            "data": {"source": "digits"},
        }
    ).with_files("", "", None)


def session(task: str, workers: int, **train: Any) -> Session:
    """A session of 70 digits in batches of 32: the last batch is uneven, as are slices of 3 workers."""
    point = point_of(task, workers, **train)
    set_seed_and_precision(0, point.train.precision)
    joined = join("torch-virtual", ALONE, workers=workers, device="cpu")
    return Session(point, ENGINE, joined, *digits(), PhaseClock())


def trained(task: str, workers: int, **train: Any) -> tuple[list[Any], list[Any]]:
    made = session(task, workers, **train)
    records = list(made.epoch_records())
    return made.trainer.state.weights()[0], [
        record.validation["loss"] for record in records
    ]


OWN = """
import torch
from torch import nn
kind, engine = "classes", "torch"
loss, metrics = nn.CrossEntropyLoss(), ["accuracy"]

def model(data):
    norm = nn.BatchNorm2d(6, momentum=MOMENTUM)
    head = nn.Flatten(), nn.Linear(6 * 36, 10)
    return nn.Sequential(nn.Conv2d(1, 6, 3), norm, nn.ReLU(), nn.Dropout2d(0.3), *head)
"""


def workers() -> dict[str, Any]:
    """Difference of 2 and 3 workers from one, after 2 epochs."""
    own, plain, found = FOLDER / "own.py", str(FOLDER / "plain.py"), {}
    own.write_text(OWN.replace("MOMENTUM", "0.2"))
    Path(plain).write_text(
        OWN.replace("norm, nn.ReLU(), nn.Dropout2d(0.3)", "nn.ReLU()").replace(
            "MOMENTUM", "0.2"
        )
    )
    for task, train in (
        (plain, {}),
        (plain, {"optimizer": "adam", "learning_rate": 1e-3, "clip_norm": 0.1}),
        (plain, {"schedule": "steps"}),
        (str(own), {"sync_batch_norm": True}),
    ):
        one, losses = trained(task, 1, **train)
        for count in (2, 3):
            weights, others = trained(task, count, **train)
            apart = max(difference(a, b) for a, b in zip(one, weights, strict=True))
            found[f"{Path(task).stem} {train} {count}"] = max(
                apart, difference(losses, others)
            )
    precise, _ = trained("torch_cnn", 2, precision="float32")
    for precision in ("mixed_bfloat16", "mixed_float16"):
        mixed, _ = trained("torch_cnn", 2, precision=precision)
        found[precision] = [
            difference(a, b) for a, b in zip(precise, mixed, strict=True)
        ]
    return found


def layouts() -> list[bool]:
    """Whether the gradients that flow back through flattening to max-pooling are channels last."""
    task = task_of(torch_cnn, info("classes", (12, 12, 1), 3), TRAIN)
    found: list[bool] = []

    def look(gradients: Any) -> None:
        found.append(gradients[0].is_contiguous(memory_format=torch.channels_last))

    pool = next(
        layer
        for layer in task.model.module.modules()
        if isinstance(layer, nn.MaxPool2d)
    )
    pool.register_forward_hook(
        lambda layer, inputs, outputs: outputs.grad_fn.register_prehook(look) and None
    )
    task.model(torch.rand(2, 12, 12, 1), training=True).sum().backward()
    return found


def statistics() -> dict[str, Any]:
    """Difference between our running statistics of two workers (3 and 2 rows) and PyTorch's own, averaged."""
    found = {}
    for momentum in (0.2, None):
        torch.manual_seed(0)
        rows = torch.randn(5, 3, 4, 4, dtype=torch.float64)
        plain = [nn.BatchNorm2d(3, momentum=momentum).double() for _ in range(2)]
        for layer, part in zip(plain, (rows[:3], rows[3:]), strict=True):
            layer(part)
        ours = []
        for start, count in ((0, 3), (3, 2)):
            net = nn.Sequential(
                nn.BatchNorm2d(3, momentum=momentum), nn.Flatten(), nn.Linear(48, 3)
            )
            data = info("classes", (4, 4, 3), 3)
            task = task_file(
                data, model=lambda data, net=net: net, loss="cross_entropy"
            )
            adapt_model(task.model, seed=0, sync_batch_norm=False)
            part = Slice(None, None, start, count, 5)
            weighted = RunningStatistics(batch_norms(task.model), processes=2)
            weighted.begin(part, slices=1)
            task.model(rows[start : start + count].permute(0, 2, 3, 1), training=True)
            weighted.add(part)
            weighted.end()
            ours.append(task.model.module[0])
        for name in ("running_mean", "running_var"):
            mean = sum(getattr(layer, name).double() for layer in ours) / 2
            by_rows = sum(
                share * getattr(layer, name)
                for share, layer in zip((0.6, 0.4), plain, strict=True)
            )
            found[f"{name} {momentum}"] = difference(mean, by_rows)
        found[f"tracked {momentum}"] = [
            int(layer.num_batches_tracked) for layer in ours
        ]
    return found


def resumed() -> float:
    """Difference between a run resumed in its middle and an uninterrupted one."""
    own = FOLDER / "resumed.py"
    own.write_text(
        OWN.replace("MOMENTUM", "None").replace("nn.ReLU()", "nn.AlphaDropout(0.1)")
    )
    whole = session(str(own), 2)
    epochs = whole.epoch_records()
    next(epochs)
    values = whole.trainer.state.values()
    values = type(values)(
        [np.copy(v) for v in values.common], [np.copy(v) for v in values.own]
    )
    next(epochs)
    again = session(str(own), 2)
    following = again.epoch_records()
    next(following)
    again.trainer.state.assign(values)
    torch.rand(
        3
    )  # AlphaDropout draws from PyTorch's own generator, whose state differs after a resume
    next(following)
    pairs = zip(
        whole.trainer.state.weights()[0], again.trainer.state.weights()[0], strict=True
    )
    return max(difference(one, other) for one, other in pairs)


OF_KERAS = """
import keras
from keras import layers
kind, pretrained = "classes", ["0", "1"]
loss, metrics = "sparse_categorical_crossentropy", ["accuracy"]

def model(data):
    first = layers.Conv2D(6, 3, name="0"), layers.BatchNormalization(name="1", momentum=0.8)
    last = layers.Flatten(), layers.Dense(10, "softmax", name="5")
    return keras.Sequential([keras.Input(data.input_shape), *first, *last], name="net")
"""


def called() -> dict[str, Any]:
    """Rates set by one callback until another stops training, and whether the best weights were restored."""
    own = FOLDER / "called.py"
    own.write_text(OWN.replace("MOMENTUM", "0.2"))
    made = session(str(own), 2, epochs=5)
    made.trainer.task.callbacks.extend(
        [
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.04 / 2**epoch),
            keras.callbacks.EarlyStopping(
                "val_loss", min_delta=100, restore_best_weights=True
            ),
        ]
    )
    records, after = [], []
    for record in made.epoch_records():
        records.append(record)
        after.append([np.copy(value) for value in made.trainer.state.weights()[0]])
    kept = made.trainer.state.weights()[0]
    return {
        "rates": [record.learning_rate for record in records],
        "best": max(
            difference(one, other) for one, other in zip(after[0], kept, strict=True)
        ),
    }


def frozen(
    text: str = OWN.replace("MOMENTUM", "0.2") + 'pretrained = ["0", "1"]\n',
) -> dict[str, Any]:
    """Which weights of a task change while its first layers are frozen, and afterwards."""
    own = FOLDER / "frozen.py"
    own.write_text(text)
    made = session(str(own), 1, frozen_epochs=1)
    names = [
        weight.path.replace("/", ".").removeprefix("net.")
        for weight in made.trainer.task.model.weights
    ]
    epochs, moved = made.epoch_records(), []
    before = made.trainer.state.weights()[0]
    for _ in range(2):
        next(epochs)
        after = made.trainer.state.weights()[0]
        moved.append(
            [
                n
                for n, a, b in zip(names, before, after, strict=True)
                if not np.array_equal(a, b)
            ]
        )
        before = [np.copy(value) for value in after]
    return {"names": names, "moved": moved}


def frozen_layers() -> dict[str, Any]:
    """The same for a Keras model."""
    return frozen(OF_KERAS)


def fresh() -> dict[str, Any]:
    """Statistics in an evaluation: of 1 and 3 workers, of all values; and what an evaluation leaves."""
    file = FOLDER / "fresh.py"
    file.write_text(OWN.replace("MOMENTUM", "0.1"))
    found, left = [], []
    for workers in (1, 3):
        made = session(str(file), workers)
        before = [variable.value.clone() for variable in made.trainer.state.local]
        with made.evaluating():
            found.append(
                [variable.value.clone() for variable in made.trainer.state.local]
            )
        left += [
            difference(a, b.value)
            for a, b in zip(before, made.trainer.state.local, strict=True)
        ]
    prepared, split = digits()
    rows = (
        prepared.inputs[statistics_samples(split.train, 0)].transpose(0, 3, 1, 2)
        / 255.0
    )
    with torch.no_grad():
        values = made.trainer.task.model.module[0](torch.tensor(rows))
    known = values.mean((0, 2, 3)), values.var((0, 2, 3), correction=0)
    return {
        "workers": max(map(difference, *found)),
        "left": max(left),
        "known": max(map(difference, known, found[0])),
    }


def exported() -> dict[str, float]:
    """Difference between exported models and `Inference` on stored images."""
    import onnxruntime

    made = session("torch_cnn", 1, precision="float32")
    next(made.epoch_records())
    path, images = (
        FOLDER / "model.pt",
        np.random.default_rng(0).integers(0, 256, (3, 8, 8, 1)).astype(np.uint8),
    )
    made.trainer.file.save(str(path))
    record = ModelRecord.model_validate(
        {
            "engine": "torch",
            "task": "torch_cnn",
            "kind": "classes",
            "input_shape": (8, 8, 1),
            "dtype": "uint8",
            "scale": 1 / 255,
            "class_names": [str(digit) for digit in range(10)],
            "train": TRAIN.model_dump(),
        }
    )
    told = torch.tensor(ENGINE.inference(str(path), record).outputs(images, 1 / 255))
    found = {
        "present": difference(
            told, made.trainer.file.inference().outputs(images, 1 / 255)
        )
    }
    given = torch.from_numpy(images).permute(0, 3, 1, 2)
    for form in ("pt2", "onnx"):
        out = str(FOLDER / f"exported.{form}")
        ENGINE.export(str(path), record, out, form)
        if form == "onnx":
            outputs = torch.tensor(
                onnxruntime.InferenceSession(out).run(None, {"image": given.numpy()})[0]
            )
        else:
            outputs = torch.export.load(out).module()(given)
        found[form] = difference(torch.softmax(outputs.detach(), 1), told)
    return found


PARTS = (
    "architectures",
    "optimizers",
    "objectives",
    "workers",
    "layouts",
    "statistics",
    "resumed",
    "frozen",
    "frozen_layers",
    "called",
    "fresh",
    "exported",
)
"""Functions whose results are the answers of this module."""
