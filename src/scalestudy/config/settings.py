"""The sections of a study file, with their defaults; publications rely on the names and choices."""

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
)

from scalestudy.config.value_types import (
    Augment,
    Batch,
    BucketSize,
    Colour,
    Cores,
    EngineName,
    Epochs,
    LauncherName,
    Loss,
    Metrics,
    Name,
    Optimizer,
    Pattern,
    Pixels,
    Rate,
    Schedule,
    Seconds,
    Seed,
    Steps,
    Strategy,
    Value,
    Weights,
    Workers,
)
from scalestudy.plugins.strategies import DEFAULT
from scalestudy.util.units import bytes_of

EFFICIENCY_TARGET = 0.7
"""Cost efficiency that is worth its cost, unless a plan says otherwise."""
DEFAULT_LAUNCHER = "local"
WITHOUT_SITE = (DEFAULT_LAUNCHER, "hosts")
"""Launchers without a queue, and so without a site profile."""


class StrictModel(BaseModel):
    """Base of all sections: unknown keys are errors, and values never change after reading."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        # The schema describes each key by the text below it, so that pages and editors do not need another.
        use_attribute_docstrings=True,
    )


class StoredSettings(StrictModel):
    """Base of what a study stores: keys that only other versions know are left out when it is read.

    `config.parse` refuses unknown keys of a study file.
    """

    model_config = ConfigDict(extra="ignore")


class DataSettings(StoredSettings):
    """The data set."""

    source: Name | None = Field(default=None, examples=["path/to/data"])
    """A folder, a table of images, an .npz file, "indents", "indents:COUNT" or "digits". By
    default, the task's own."""
    read: Name | None = Field(default=None, examples=["my_task.py"])
    """Python file whose function `read(data)` reads the source. By default, the task's file if it has one."""
    validation: Annotated[float, Field(gt=0, lt=1)] | Literal["given"] | None = Field(
        default=None,
        examples=[0.2],
    )
    """Share of the training set that is held out, or "given": the split that comes with the source. By
    default, that split if there is one, otherwise 0.2."""
    images: Name | None = Field(default=None, examples=["scans/*.tif"])
    """Pattern of the image files, for a folder that has none of the layouts. Needs `masks`."""
    masks: Name | None = Field(default=None, examples=["annotated/*.png"])
    """Pattern of their masks. They pair with the images by name, or by the numbers in their names."""
    colours: dict[str, Colour] | None = Field(
        default=None,
        examples=[{"background": "#000000", "cell": "#ff0000", "ignore": "#ffffff"}],
        json_schema_extra={
            "wanted": 'a table of colours by class, { cell = "#ff0000" }'
        },
    )
    """Colours (or greys) of the classes in the masks, in the order of the classes. Pixels of "ignore" count
    in no loss and no metric."""
    label_pattern: Pattern | None = Field(default=None, examples=["^([a-z]+)_[0-9]+"])
    """Regular expression that finds the class in a file's name or path, such as `'^([^/]+)/'`, which makes
    each folder a class."""
    group_pattern: Pattern | None = Field(default=None, examples=["^(patient[0-9]+)_"])
    """Regular expression that finds the group in a file's name or path. A split never divides a group, such
    as the images of one patient."""
    file_column: Name | None = Field(default=None, examples=["image_id"])
    """Column of a table that holds the files. By default, this and the other columns are found by name."""
    label_column: Name | None = Field(default=None, examples=["diagnosis"])
    """Column of a table that holds the classes."""
    image_size: tuple[Pixels, Pixels] | None = Field(
        default=None,
        examples=[[256, 256]],
    )
    """Height and width in pixels to which images are resized; see `fit`. By default, they keep their size."""
    fit: Literal["pad", "crop", "stretch"] = "pad"
    """How images are resized: "pad" and "crop" keep the aspect ratio and pad, or crop around the centre;
    "stretch" does not keep it."""
    tile: tuple[Pixels, Pixels] | None = Field(default=None, examples=[[512, 512]])
    """Height and width in pixels of the tiles into which large images with masks are cut, instead of
    `image_size`. They overlap by an eighth of the shorter side; each pixel counts once."""
    value_range: tuple[Value, Value] | None = Field(default=None, examples=[[0.0, 1.0]])
    """Values of the images that the model sees as 0 and 1. By default, the range of 8 or 16 bits;
    floating-point numbers are not scaled."""
    cache: Name | None = Field(default=None, examples=["~/.cache/scalestudy"])
    """Folder of prepared data sets. By default, in your cache folder."""
    seed: Seed = 0
    """Seed of the split and of synthetic data, the same for all runs of a study."""


class ResolvedData(DataSettings):
    """The data settings, completed with the task's."""

    source: Name


class PlanSettings(StoredSettings):
    """The training that will be paid for, which may be longer than those of the study.

    Times, costs, the decision, deadlines and proposals are computed for it, from what the study measured.
    """

    epochs: Epochs | None = None
    """Epochs of the planned training. By default, those of the study."""
    samples: Annotated[int, Field(gt=0, le=10**12)] | None = None
    """Samples of the planned training set; evaluations grow alike. By default, those of the study."""
    runs: Annotated[int, Field(gt=0, le=1_000_000)] = 1
    """How many such trainings a proposal requests."""
    efficiency: Annotated[
        float,
        Field(
            gt=0,
            le=1,
            allow_inf_nan=False,
        ),
    ] = EFFICIENCY_TARGET
    """Cost efficiency that the choice must keep: 0.7 accepts 1 / 0.7 times the cost of the cheapest row."""


class TrainSettings(StoredSettings):
    """The training. Keys without a default have one in the task."""

    epochs: Epochs | None = None
    """Passes over the training set."""
    batch_size: Batch | None = None
    """Samples in a step, of one worker or of all workers together; see `batch`."""
    batch: Literal["per-worker", "global"] = "per-worker"
    """Whether `batch_size` is that of one worker, so that more workers take fewer and larger steps, or that
    of all workers together, so that they take the same steps as one."""
    accumulate: Annotated[int, Field(gt=0, le=10_000)] = 1
    """Micro-batches that a worker computes in each step. Their gradients are added before one exchange and
    one update. With `batch` "per-worker" a micro-batch has `batch_size` samples, and the global batch is
    batch_size x accumulate x workers; with "global" the global batch stays `batch_size`."""
    loss: Loss | None = Field(default=None, examples=["bce + dice"])
    """The loss: a sum of bce, cross_entropy, focal and dice. Each term may have a weight before it and
    parameters behind it. By default, the task's own."""
    metrics: Metrics | None = Field(default=None, examples=[["dice", "iou", "recall"]])
    """The metrics; the first one is the quality: iou, dice, accuracy, top_k, precision, recall, f1. By
    default, the task's own."""
    class_weights: Literal["balanced"] | Weights | None = Field(
        default=None,
        examples=["balanced"],
    )
    """Factors of the cross-entropy of each class: one number for each class, or "balanced", the inverse of
    its share of the training set. By default, 1."""
    optimizer: Optimizer | None = None
    """The optimizer. "momentum" and "nesterov" are SGD with momentum 0.9."""
    learning_rate: Rate | None = None
    """Learning rate for the reference batch, before it is scaled."""
    learning_rate_scaling: Literal["none", "linear", "sqrt"] = "linear"
    """How the learning rate grows if the global batch is k times the reference batch: not at all, by k, or by
    the square root of k (with Adam, "sqrt" also adapts the betas and epsilon)."""
    reference_batch: Batch | None = Field(default=None, examples=[16])
    """Global batch for which `learning_rate` was chosen. By default, the batch of one worker."""
    clip_norm: Rate | None = Field(default=None, examples=[1.0])
    """Largest global norm of the gradients, after they were summed over all workers; larger ones are scaled
    down. By default, there is no limit."""
    warmup_epochs: Annotated[
        float,
        Field(
            ge=0,
            le=1e6,
            allow_inf_nan=False,
        ),
    ] = 0.0
    """Epochs, or a part of one, in which the learning rate rises linearly to its full value."""
    schedule: Schedule | None = None
    """The learning rate after the warm-up. "steps" halves it after 40, 60 and 75 % of the training;
    "linear" and "cosine" lower it to zero."""
    precision: Literal[
        "float32", "tf32", "mixed_bfloat16", "mixed_float16", "float64"
    ] = "float32"
    """Arithmetic of the model. "float32" is IEEE's on every device. "tf32" lets GPUs from Ampere on round the
    factors of matrix products and convolutions to 10 bits; everything else stays float32."""
    xla: bool = False
    """Whether to compile the forward and backward pass with XLA."""
    compile: bool = False
    """Whether to compile a PyTorch module with `torch.compile`, before the first epoch is timed."""
    find_unused_parameters: bool = False
    """Whether a step of PyTorch's "ddp" may leave out weights, as a model does that takes another branch for
    some inputs. Each step then searches the graph of the loss for them, which takes time; without it, such a
    step ends the run."""
    sync_batch_norm: bool = False
    """Whether batch normalisation uses the global batch, instead of each worker's part of it."""
    batch_norm: Literal["fresh", "moving"] = "fresh"
    """Statistics of batch normalisation in evaluations and in the saved model: "fresh" computes them from
    training samples, the same for any number of workers; "moving" uses the averages kept while training,
    which after few updates still hold their initial values. Training is the same with both."""
    steps_per_call: Steps | None = Field(default=None, examples=[8])
    """Steps in one call of the compiled function. By default, chosen by the size of the task."""
    deterministic: bool | None = Field(default=None, examples=[True])
    """Whether a run repeats bit for bit on the same machine; false lets a GPU use faster, unordered sums. By
    default, true on CPUs, where it costs nothing, and false on GPUs."""
    augment: Augment = Field(default="", examples=["flip, rotate(15), brightness(0.2)"])
    """Augmentation of training samples, drawn anew in each epoch from the seed, the epoch and the sample:
    flip, rotate90, rotate, crop, brightness, contrast, noise."""
    weights: Name | None = Field(default=None, examples=["imagenet"])
    """Initial weights of a pretrained model: "imagenet" (Keras's), a file of weights without the top layers,
    or "none" to train from scratch."""
    input_scaling: Literal["unit", "pretrained"] | None = Field(
        default=None,
        examples=["pretrained"],
    )
    """Input of a pretrained model: numbers from 0 to 1 ("unit"), or what its weights were trained on."""
    frozen_epochs: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Epochs in which pretrained weights are frozen, and only the other layers are trained. Then all layers
    are trained, with a fresh optimizer."""
    unfrozen_rate: Rate = 1.0
    """Factor of the learning rate after `frozen_epochs`."""
    evaluate_every: Epochs = 1
    """Epochs from one evaluation to the next. The last epoch is always evaluated."""
    keep_best: Literal["quality", "none"] = "quality"
    """Whether to keep the weights of the epoch with the best quality beside the last ones."""
    gallery: bool = True
    """Whether to keep a few validation samples with their predictions for the report."""


class ResolvedTrain(TrainSettings):
    """The training settings, completed with the task's."""

    epochs: Epochs
    batch_size: Batch
    optimizer: Optimizer
    learning_rate: Rate
    schedule: Schedule
    deterministic: bool = True

    @property
    def step_batch(self) -> int:
        """Samples in a full step, of one worker or of all workers together (see `batch`)."""
        # A global batch is divided into micro-batches, one of a worker is multiplied by them.
        if self.batch == "per-worker":
            return self.batch_size * self.accumulate
        return self.batch_size


class LaunchSettings(StoredSettings):
    """Where and how workers run."""

    on: LauncherName = DEFAULT_LAUNCHER
    """"local" is this machine; "hosts" are several machines without a queue, by SSH; "slurm" and "pbs" submit
    jobs to the queue of a cluster."""
    hosts: Annotated[tuple[Name, ...], Field(min_length=1)] | None = Field(
        default=None,
        examples=[["lab1", "lab2:2"]],
        json_schema_extra={"wanted": 'a list of hosts, ["a", "b:2"]'},
    )
    """Hosts for on = "hosts", in the order in which they are filled, each with its largest number of workers
    (by default one for each GPU, or as its cores allow)."""
    site: Name | None = Field(default=None, examples=["my-site.toml"])
    """Name or path of the site profile, for a queue."""
    cpus_per_worker: Cores | None = Field(default=None, examples=[8])
    """Cores to which each worker is pinned, the same for any number of workers. By default, 1 on CPUs; on
    GPUs the node's cores divided by its GPUs."""
    workers_per_node: Annotated[int, Field(gt=0, le=10_000)] | None = Field(
        default=None,
        examples=[2],
    )
    """Largest number of workers on a node of a queue, so that a sweep can compare placements: `[4, 2]` puts
    four workers on one node and on two. By default, as many as fit."""
    device: Literal["auto", "cpu", "gpu"] = "auto"
    """Device of the workers; "auto" takes GPUs if there are any. A run that asks for GPUs, or was given some,
    stops if it cannot use them; none falls back to CPUs."""
    communication: Literal["auto", "ring", "nccl"] = "auto"
    """How TensorFlow's "multiworker" sums gradients: gRPC rings or NCCL. "auto" is NCCL on GPUs, and
    TensorFlow's choice of rings on CPUs."""
    bucket_size: BucketSize = "auto"
    """Minimum size of the buckets in which gradients are summed over workers, the last layers first, so that
    sums begin before back-propagation ends. "all" puts them into one. "auto" is "32 MiB"; for TensorFlow's
    own strategies with NCCL it is two buckets, each with half of the work of back-propagation; for PyTorch's
    "ddp" it is PyTorch's choice, 1 MiB and then 25 MiB."""
    compression: Literal["none", "fp16", "bf16"] = "none"
    """Sum gradients over workers in 16 bits: half of the bytes, rounded to 11 ("fp16") or 8 ("bf16") bits.
    "fp16" loses gradients below 6e-8, "bf16" keeps them."""
    progress_timeout: Seconds = 600.0
    """Seconds without progress of a rank after which the run is stopped. While training, the limit is 20
    times the slowest step so far if that is less, but at least 120 s."""
    open_ports: bool = False
    """Whether the workers of a run on this machine may use its network, where others may reach their ports.
    By default they get a network of their own (`scalestudy docs reference/ports`), from which no other machine is
    reached: set it for a task that must, such as one with an experiment tracker."""
    environments: dict[EngineName, Name] | None = Field(
        default=None,
        examples=[{"tensorflow": "~/venvs/tensorflow"}],
        json_schema_extra={
            "wanted": 'a table of folders by engine, { tensorflow = "~/venvs/tensorflow" }'
        },
    )
    """Virtual environment for the workers of each engine (for a queue also the image of a container),
    relative to the study file. By default, that of this command or of the site."""

    @property
    def bucket_bytes(self) -> int | None:
        """Minimum bytes of a bucket of gradients; None if all gradients are one bucket."""
        if self.bucket_size == "all":
            return None
        if self.bucket_size == "auto":
            return bytes_of("32 MiB")
        return bytes_of(self.bucket_size)


class ResolvedLaunch(LaunchSettings):
    """The launch settings, completed for the machine."""

    cpus_per_worker: Cores = 1


class SweptValue(StrictModel):
    """One value of each list that belongs to [sweep] itself."""

    strategy: Strategy = DEFAULT
    workers: Workers = 1
    seed: Seed = 0
