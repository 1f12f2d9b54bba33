"""The sections of a study file, with their defaults; names and choices are a contract with papers."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic_core import CoreSchema, core_schema

from scalestudy.study import augmentation, launchers
from scalestudy.study.engines import engine_names
from scalestudy.study.objectives import checked_loss, checked_metrics
from scalestudy.study.strategies import swept_names, swept_words, working_names
from scalestudy.util.units import bytes_of


class OneOf:
    """Marks a text as one of some names: `Annotated[str, OneOf(names)]`, where `names` gives them when asked.

    In a JSON schema it is an enum, as a Literal would be.
    """

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._known, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"enum": list(self._names()), **handler(schema)}

    def _known(self, name: str) -> str:
        if name not in self._names():
            raise ValueError("one of " + ", ".join(f'"{known}"' for known in self._names()))
        return name


EngineName = Annotated[str, OneOf(engine_names)]
"""What computes: the framework."""
Strategy = Annotated[str, OneOf(swept_names)]
"""A strategy as a point has it."""
StrategyWord = Annotated[str, OneOf(swept_words)]
"""A strategy as a study file names it: "single" is each engine's own."""
Implementation = Annotated[str, OneOf(working_names)]
"""A strategy that does the work: "native" is none, but stands for one of several."""
Order = Literal["blocks", "rows"]
"""Order of runs: a block of all rows for each seed, or all seeds of a row before the next row."""
Optimizer = Literal["sgd", "momentum", "nesterov", "adam", "adamw", "lamb"]
Schedule = Literal["constant", "steps", "linear", "cosine"]
# Far beyond what anybody trains, and small enough that nothing overflows, or is counted for hours.
Rate = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Epochs = Annotated[int, Field(gt=0, le=1_000_000)]
Steps = Annotated[int, Field(gt=0, le=1_000_000)]
Name = Annotated[str, Field(min_length=1)]
Batch = Annotated[int, Field(gt=0, le=10_000_000)]
Workers = Annotated[int, Field(gt=0, le=100_000)]
Cores = Annotated[int, Field(gt=0, le=10_000)]
Seconds = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]
Pixels = Annotated[int, Field(gt=0, le=65_536)]
Value = Annotated[float, Field(allow_inf_nan=False)]
Colour = Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")]
_SIZE = Field(pattern="^[1-9][0-9]{0,5} [KMG]iB$", json_schema_extra={"wanted": 'a size as "32 MiB"'})
_NAME = Field(pattern="^[A-Za-z][A-Za-z0-9_.@-]{0,99}$", json_schema_extra={"wanted": "the name of a metric"})
BucketSize = Literal["auto", "all"] | Annotated[str, _SIZE]


def _as_tuple(given: object) -> object:
    """One metric stands for a list of it."""
    return (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else given


Loss = Annotated[
    str,
    AfterValidator(checked_loss),
    Field(json_schema_extra={"wanted": 'a sum of losses as "0.5*bce + dice"'}),
]
Metrics = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_tuple),
    AfterValidator(checked_metrics),
    Field(min_length=1, json_schema_extra={"wanted": 'a list of metrics as ["f1", "top_k(k=5)"]'}),
]
Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Weights = Annotated[
    tuple[Weight, ...], Field(min_length=2, json_schema_extra={"wanted": "a list of numbers, one a class"})
]
_OPERATIONS = Field(
    json_schema_extra={"wanted": 'operations as "flip, rotate(15)", of docs/guides/augmentation.md'}
)
Augment = Annotated[str, AfterValidator(augmentation.checked), _OPERATIONS]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""What NumPy and Keras take: 32 bits without a sign."""


def _regular(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"a regular expression ({error})") from error
    return text


Pattern = Annotated[
    str, AfterValidator(_regular), Field(json_schema_extra={"wanted": "a quoted regular expression"})
]


class StrictModel(BaseModel):
    """Base of all sections: unknown keys are errors, values never change after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class DataSettings(StrictModel):
    """What is read."""

    source: Name | None = Field(default=None, examples=["path/to/data"])
    """A folder, a table of images, an .npz file, "indents", "indents:COUNT" or "digits", or a public set:
    "tfds:NAME", "keras:NAME" or "indents@zenodo"; the task's own when absent."""
    read: Name | None = Field(default=None, examples=["my_task.py"])
    """Python file whose `read(data)` reads the source; the task's own file where it defines `read`."""
    validation: Annotated[float, Field(gt=0, lt=1)] | Literal["given"] | None = Field(
        default=None, examples=[0.2]
    )
    """Share of the training set held out, or "given" (a split that the source brings).
    When absent: the given one where there is one, 0.2 otherwise."""
    layout: Literal["pairs", "suffixes", "classes", "coco", "table"] | None = Field(
        default=None, examples=["pairs"]
    )
    """How a folder is laid out (docs/reference/data.md); recognised by its names when absent."""
    images: Name | None = Field(default=None, examples=["scans/*.tif"])
    """Pattern of the images in a folder of any layout; together with `masks`."""
    masks: Name | None = Field(default=None, examples=["annotated/*.png"])
    """Pattern of their masks, which pair with the images by name or by the numbers in their names."""
    colours: dict[str, Colour] | None = Field(
        default=None,
        examples=[{"background": "#000000", "cell": "#ff0000", "ignore": "#ffffff"}],
        json_schema_extra={"wanted": 'a table of colours by class, { cell = "#ff0000" }'},
    )
    """Colours (or greys) of the classes in masks, in the order of the classes; "ignore" counts in nothing."""
    label_pattern: Pattern | None = Field(default=None, examples=["^(cat|dog)"])
    """Regular expression that finds the class in the name of a file; its first brackets, or all of it."""
    group_pattern: Pattern | None = Field(default=None, examples=["^(patient[0-9]+)_"])
    """Regular expression that finds the group in the name of a file, or in its path: what belongs together
    and stays on one side of a split."""
    file_column: Name | None = Field(default=None, examples=["image_id"])
    """Column of the files in a table of samples; told by its name when absent, like the others."""
    label_column: Name | None = Field(default=None, examples=["diagnosis"])
    """Column of the classes."""
    mask_column: Name | None = Field(default=None, examples=["mask"])
    """Column of the files of masks."""
    split_column: Name | None = Field(default=None, examples=["split"])
    """Column that says train, val or test."""
    group_column: Name | None = Field(default=None, examples=["patient"])
    """Column of the groups: what belongs together and stays on one side of a split."""
    folds: Annotated[int, Field(ge=2, le=1000)] | None = Field(default=None, examples=[5])
    """Parts that the training set is cut into for cross-validation, instead of `validation`."""
    fold: Annotated[int, Field(ge=0, le=999)] = 0
    """The part, from 0, that quality is measured on; all others train. Sweep it to run every fold."""
    image_size: tuple[Pixels, Pixels] | None = Field(default=None, examples=[[256, 256]])
    """Height and width in pixels that images are brought to, as `fit` says; their own when absent."""
    fit: Literal["pad", "crop", "stretch"] = "pad"
    """How images come to `image_size`: scaled with their aspect kept and padded, the same and cropped around
    their centre, or stretched."""
    tile: tuple[Pixels, Pixels] | None = Field(default=None, examples=[[512, 512]])
    """Height and width in pixels of tiles that large images with masks are cut into, instead of
    `image_size`; each pixel counts once."""
    overlap: Annotated[int, Field(ge=0, le=65_536)] | None = Field(default=None, examples=[64])
    """Pixels that neighbouring tiles share at least; an eighth of the shorter side of a tile when absent."""
    stack: Literal["samples", "channels", "first"] | None = Field(default=None, examples=["samples"])
    """What the pages of a TIFF with several are: samples of one group, the channels of one image, or only
    the first is taken. Files with pages are refused when absent."""
    value_range: tuple[Value, Value] | None = Field(default=None, examples=[[0.0, 1.0]])
    """Lowest and highest value of the images, which models see as 0 and 1; when absent, the range of 8 or 16
    bits, and floating-point numbers as they are."""
    cache: Name | None = Field(default=None, examples=["~/.cache/scalestudy"])
    """Folder of prepared data sets; the user's cache folder when absent."""
    skip_bad: bool = False
    """Go on without damaged files (truncated, empty, no image inside); each is named, and recorded."""
    storage: Literal["auto", "arrays", "encoded"] = "auto"
    """How a prepared set is kept: "arrays" are read without decoding; "encoded" takes less space, and is
    decoded while training. "auto" takes arrays if they fit into memory and onto the disk."""
    seed: Seed = 0
    """Seed of the split and of made data; the same for every run of the study."""


class ResolvedData(DataSettings):
    """What is read, with nothing left to the task."""

    source: Name


class TrainSettings(StrictModel):
    """How it is trained. The task has defaults of its own for what is None here."""

    epochs: Epochs | None = None
    """Passes over the training set."""
    batch_size: Batch | None = None
    """Samples in a step: of one worker, or of all of them together (see `batch`)."""
    batch: Literal["per-worker", "global"] = "per-worker"
    """What `batch_size` counts."""
    accumulate: Annotated[int, Field(gt=0, le=10_000)] = 1
    """Micro-batches that a worker computes one after another in each step, whose gradients add up before one
    exchange and one update. A micro-batch has `batch_size` samples, so that the global batch is batch_size x
    accumulate x workers; where `batch_size` is of all workers, it stays the global batch."""
    local_steps: Annotated[int, Field(gt=0, le=1_000_000)] = 1
    """Local SGD: each worker updates weights of its own, which are averaged over workers after so many steps
    and at the end of an epoch. It is another algorithm than summing gradients in each step, which is 1."""
    loss: Loss | None = Field(default=None, examples=["bce + dice"])
    """What is minimised: a sum of bce, cross_entropy, focal, dice, jaccard, tversky and focal_tversky, each
    with a weight before it and parameters behind it if need be; the task's own when absent."""
    metrics: Metrics | None = Field(default=None, examples=[["dice", "iou", "boundary_f1(tolerance=2)"]])
    """What is measured, the quality first: iou, dice, boundary_f1, object_ap, accuracy, top_k,
    balanced_accuracy, precision, recall, f1, auroc, average_precision, ece, brier, confusion_matrix; the
    task's own when absent."""
    class_weights: Literal["balanced"] | Weights | None = Field(default=None, examples=["balanced"])
    """What multiplies the cross-entropy of each class's labels: numbers, one a class, or "balanced", the
    inverse of the class's share of the training set; 1 when absent."""
    optimizer: Optimizer | None = None
    """Update rule. "momentum" and "nesterov" are SGD with momentum 0.9."""
    learning_rate: Rate | None = None
    """Rate at the reference batch, before scaling."""
    learning_rate_scaling: Literal["none", "linear", "sqrt"] = "linear"
    """How the rate grows with the global batch: not, by k, or by the square root of k
    (with Adam, "sqrt" adapts the betas and epsilon too)."""
    reference_batch: Batch | None = Field(default=None, examples=[16])
    """Global batch that `learning_rate` was chosen for; the batch of one worker when absent."""
    clip_norm: Rate | None = Field(default=None, examples=[1.0])
    """Global norm that gradients, once they are summed over all workers, are scaled down to; none when
    absent."""
    warmup_steps: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0
    """Steps over which the rate rises linearly to its full value."""
    warmup_epochs: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    """The same in epochs; give one of the two."""
    schedule: Schedule | None = None
    """What the rate does after the warm-up. "steps" multiplies by 1/2, 1/4 and 1/8 after
    40 %, 60 % and 75 % of the epochs."""
    precision: Literal["float32", "tf32", "mixed_bfloat16", "mixed_float16", "float64"] = "float32"
    """Arithmetic of the model. "float32" is IEEE's on every device. "tf32" lets GPUs from Ampere on round
    the factors of matrix products and convolutions to 10 bits; all else stays float32."""
    xla: bool = False
    """Compile the forward and backward pass with XLA."""
    sync_batch_norm: bool = False
    """Batch normalisation over the global batch instead of each worker's own."""
    steps_per_call: Steps | None = Field(default=None, examples=[8])
    """Steps computed in one call of the compiled function; chosen by the task's size when absent."""
    deterministic: bool | None = Field(default=None, examples=[True])
    """Repeat bit for bit on the same machine; false lets a GPU choose faster, unordered sums.
    When absent: true on CPUs, where it costs nothing, and false on GPUs."""
    augment: Augment = Field(default="", examples=["flip, rotate(15), brightness(0.2)"])
    """What is done anew to training samples in each epoch, drawn from the seed, the epoch and the sample:
    flip, rotate90, rotate, scale, shift, crop, elastic, brightness, contrast, noise, mixup, cutmix."""
    weights: Name | None = Field(default=None, examples=["imagenet"])
    """Weights that a model begins with, of tasks that have some: "imagenet" (Keras's own), a file of weights
    without the top, or "none": from scratch."""
    input_scaling: Literal["unit", "pretrained"] | None = Field(default=None, examples=["pretrained"])
    """What models with such weights see: numbers from 0 to 1, or what the weights were trained on."""
    frozen_epochs: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Epochs in which such weights stay as they are, and only the layers behind them learn; then all learn,
    with a fresh optimizer."""
    unfrozen_rate: Rate = 1.0
    """Factor of the learning rate from then on."""
    evaluate_every: Epochs = 1
    """Epochs between two evaluations; the last epoch is always evaluated."""
    keep_best: Annotated[str, _NAME] = "quality"
    """What the weights of the best epoch are kept by, beside the last: "quality", the name of another
    metric of the task, "loss", or "none"."""
    gallery: bool = True
    """Leave a few validation samples with their prediction for the report when the run ends."""


class ResolvedTrain(TrainSettings):
    """How it is trained, with nothing left to the task."""

    epochs: Epochs
    batch_size: Batch
    optimizer: Optimizer
    learning_rate: Rate
    schedule: Schedule
    deterministic: bool = True

    @property
    def step_batch(self) -> int:
        """Samples of a full step: of one worker, or of all of them together (see `batch`)."""
        return self.batch_size * (self.accumulate if self.batch == "per-worker" else 1)


class LaunchSettings(StrictModel):
    """Where it runs."""

    on: Annotated[str, OneOf(launchers.names)] = launchers.DEFAULT
    """"local": this machine. "slurm", "pbs": through the queue of a cluster."""
    site: Name | None = Field(default=None, examples=["my-site.toml"])
    """Name or path of the site profile (for a queue)."""
    cpus_per_worker: Cores | None = Field(default=None, examples=[8])
    """Cores that each worker is pinned to, the same at every worker count; when absent 1 on CPUs, and on GPUs
    the node's cores divided by its GPUs."""
    device: Literal["auto", "cpu", "gpu"] = "auto"
    """What workers compute on: "auto" takes GPUs where there are any. A run that asks for GPUs, or was given
    some, ends where it cannot use them: none falls back to CPUs."""
    communication: Literal["auto", "ring", "nccl"] = "auto"
    """Collectives of "multiworker": gRPC rings or NCCL. "auto" is NCCL on GPUs, and TensorFlow's choice
    of rings on CPUs."""
    bucket_size: BucketSize = "auto"
    """Gradients are summed over workers in buckets of this size at least, the last layers' first, so that
    sums begin before back-propagation ends. "all" puts them into one. "auto" is "32 MiB"; under
    TensorFlow's own strategies with NCCL it is two, each with half of the work of back-propagation."""
    compression: Literal["none", "fp16", "bf16"] = "none"
    """Numbers of 16 bits in which gradients are summed over workers: half of the bytes, each rounded to 11
    ("fp16") or 8 ("bf16") bits. "fp16" loses gradients under 6e-8, which "bf16" keeps."""
    progress_timeout: Seconds = 600.0
    """Seconds without progress of a rank, in whatever phase, after which the run is ended. While training
    it is 20 times the slowest step seen, if that is less, but no less than 120 s."""

    environments: dict[EngineName, Name] | None = Field(
        default=None,
        examples=[{"tensorflow": "~/venvs/tensorflow"}],
        json_schema_extra={"wanted": 'a table of folders by engine, { tensorflow = "~/venvs/tensorflow" }'},
    )
    """Virtual environments (for a queue also images of containers) that workers of an engine start in, where
    it is not that of this command, or of the site; relative to the study file."""

    @property
    def bucket_bytes(self) -> int | None:
        """Bytes at which a bucket of gradients is full; None where all are one."""
        if self.bucket_size == "all":
            return None
        return bytes_of("32 MiB" if self.bucket_size == "auto" else self.bucket_size)


class ResolvedLaunch(LaunchSettings):
    """Where it runs, with nothing left to the machine."""

    cpus_per_worker: Cores = 1
