"""What a run writes down: the models of the files in its folder, read by everything downstream."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from scalestudy.study.metrics import Better
from scalestudy.study.settings import Order
from scalestudy.study.usage import GpuUse, NodeUse, ProcessUse

RESULT_SCHEMA: Literal[1] = 1
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Record(BaseModel):
    """Base of the records. Unknown keys are kept out of the way, so newer folders stay readable."""

    # "NaN" as a text keeps the files strict JSON, and a diverged run readable.
    model_config = ConfigDict(
        extra="ignore", frozen=True, use_attribute_docstrings=True, ser_json_inf_nan="strings"
    )


class EpochOutcome(Record):
    """What is known of an epoch, wherever it was measured; None where nobody wrote it down. Seconds."""

    epoch: int
    """Counted from 1."""
    steps: int | None = None
    samples: int | None = None
    """Samples really processed by all workers together in this epoch."""
    learning_rate: float | None = None
    """Rate of the epoch's last step."""
    loss: float | None = None
    """Mean training loss over the samples of the epoch."""
    train_seconds: float | None = None
    """Steps and the waiting for their input; no compilation, no evaluation."""
    input_seconds: float | None = None
    """Part of `train_seconds` spent waiting for input."""
    evaluation_seconds: float = 0.0
    elapsed_training_seconds: float | None = None
    """Sum of `train_seconds` up to and including this epoch."""
    validation: dict[str, float] = {}
    """Loss and metrics over the whole validation set, and metrics' values for each class; empty when this
    epoch was not evaluated."""
    resumed: bool = False
    """Whether a process went on into this epoch from a checkpoint: it warms up, as in the first."""


class EpochRecord(EpochOutcome):
    """One line of `epochs.jsonl`, appended by rank 0 after each epoch.

    Only a run of a user's own script may lack a learning rate, a loss and the waiting for input.
    """

    steps: int
    samples: int
    train_seconds: float
    elapsed_training_seconds: float


class Progress(Record):
    """`progress.json`, replaced by rank 0 about once a second while the run is alive."""

    phase: Literal["start-up", "compile", "training", "evaluation", "saving"]
    epoch: int
    """Epoch under way, counted from 1 (0 before the first)."""
    epochs: int
    step: int
    """Steps done in this epoch."""
    steps: int
    """Steps of an epoch."""
    throughput: float | None = None
    """Samples per second so far."""
    seconds_left: float | None = None
    quality: float | None = None
    """Latest validation metric."""
    restarts: int = 0
    """How often the run went on from a checkpoint."""
    cpu_percent: float | None = None
    """Utilisation of rank 0's cores since the record before; None before training."""
    gpu_percent: float | None = None
    """Mean utilisation of rank 0's GPUs as last seen; None on CPUs, and of cards that do not tell."""
    updated: float
    """Unix time of this record."""


class Sign(Record):
    """`signs/N.json`, replaced by rank N about once a second: that it lives, and how far it has come."""

    rank: int
    host: str
    pid: int
    phase: str
    """What it is at: "framework", "join", "build", "compile", "input", "step", "callbacks", …"""
    epoch: int = 0
    """Epoch under way, counted from 1 (0 before the first)."""
    step: int = 0
    """Steps done in this epoch."""
    marks: int
    """How often it has come further; alike on all ranks that are at the same place."""
    moved: float
    """Unix time at which it last came further, by the clock of its host."""
    due: float
    """Seconds from then within which it must come further again."""
    written: float
    """Unix time of this record, which changes as long as the process lives."""


class Hang(Record):
    """`signs/hang.json`: why a watchdog has ended the run."""

    rank: int | None
    """Rank that fell silent first; None where all stand at the same place."""
    host: str = ""
    phase: str = ""
    """Where it stands; "" for a rank that never gave a sign."""
    epoch: int = 0
    step: int = 0
    seconds: float
    """How long nothing has moved."""
    lives: bool = True
    """Whether its process still gives signs; not one that is stopped, or whose node is gone."""


class EpochSteps(Record):
    """The calls of one epoch, or of several that follow each other, on one rank."""

    epochs: tuple[int, int]
    """First and last, counted from 1."""
    calls: Count
    steps: Count
    step_seconds: Seconds
    input_seconds: Seconds
    longest: Seconds
    """The longest call."""


class StepRecord(Record):
    """`steps/N.json`: how long the steps of rank N took, written when it ends; of its last process.

    What is timed is a call of the compiled function as the host sees it: from its input until the next one's
    is asked for, and, apart, waiting for that. A call holds `steps_per_call` steps and their exchange, both
    in one graph; on a GPU, they are handed over ahead, and it is their pace.
    """

    rank: Count
    steps_per_call: Count
    calls: dict[int, int]
    """Histogram of the calls of so many steps (an epoch's last ones may have fewer): how many took from
    2^(i/64) to 2^((i+1)/64) microseconds, by i."""
    waits: dict[int, int]
    """The same of waiting for input, of all calls."""
    epochs: list[EpochSteps]
    """At most 512 entries: of longer runs each is of 2, 4, 8, … epochs."""


class Failure(Record):
    """`failure.json`, written by whoever owns the workers when a run has failed."""

    rank: int | None
    """Rank that died first, if it is known."""
    exit_code: int | None
    signal: str | None = None
    reason: str
    """One sentence."""
    tail: list[str] = []
    """Last lines of that rank's log."""
    cancelled: bool = False
    """Whether a person ended it."""
    job_state: str | None = None
    """The queue's last word on the job ("TIMEOUT", "NODE_FAIL", "CANCELLED", …); None without a queue."""


class Cause(Record):
    """`causes/N.json`: how rank N came to its end, or to a stop, before its work was done."""

    rank: int
    time: float
    """Unix time, by the clock of its host."""
    host: str = ""
    kind: Literal["exception", "sys.exit", "os._exit", "exit", "signal", "stopped"]
    """"os._exit": without an exception; "exit": whether there was one is not known."""
    exit_code: int | None = None
    signal: str | None = None
    """The signal that ended or stopped it, "SIGKILL"."""
    words: str = ""
    """What was raised or called: "ValueError: no such thing", "sys.exit(3)"."""
    frame: str = ""
    """Where in the user's own files: "task.py, line 7, in model"; "" where it was in none of them."""
    oom_kills: int | None = None
    """Processes of its cgroup that the kernel killed for want of memory while it ran; None if unknown."""


class JobRecord(Record):
    """`job.json`: the job of a queue that a run was given to. It is written before the queue is asked."""

    queue: str = "slurm"
    """Name of the launcher that gave it there."""
    job: str
    """Id of the job; "" until the queue has answered."""
    submission: str = ""
    """Random digits that the job's script holds too: the run folder belongs to that job alone."""
    submitted: float
    """Unix time."""
    site: str
    """Name of the site profile."""
    script: str
    """Path of the job script."""
    attempt: int = 1
    """How often this point has been submitted, this time counted."""
    cluster: str = ""
    """The queue's own name of the cluster, since another one may know the same id."""


class RankRecord(Record):
    """`ranks/N.json`: the environment of one rank."""

    rank: int
    size: int
    local_rank: int
    host: str
    pid: int
    began: float | None = None
    """Unix time at which its process began, by the clock of its host."""
    placement_source: str
    cpus: list[int]
    """Cores granted to this process, as the kernel says."""
    threads: int
    devices: list[str]
    """As the framework names them."""
    device_uuids: list[str] = []
    """UUIDs of its GPUs, or of their MIG instances, where NVML says them; empty on CPUs."""
    nodes_shared: bool | None = None
    """Whether other jobs could compute on its job's nodes too, by the queue's word; None without one."""
    versions: dict[str, str]
    """Of Python, NumPy, Scalestudy and the packages that its engine needs, where installed."""
    build: dict[str, Any] = {}
    """Builds of the framework and its libraries: CUDA and cuDNN, Horovod's controllers."""
    driver: str | None = None
    kernel: str = ""
    cpu_model: str = ""
    memory_bytes: int = 0
    memory_limit_bytes: int | None = None
    """What all processes of its job on this node may use: the machine's memory, or its cgroup's limit."""
    peak_flops: float | None = None
    """FLOP/s of one of its devices at most, as the site states it (`SCALESTUDY_PEAK_FLOPS`); else None."""
    environment: dict[str, str] = {}
    """Environment variables that change how it runs."""
    library_folders_dropped: list[str] = []
    """Folders of LD_LIBRARY_PATH (modules' CUDA) whose libraries would have gone before the packages' own."""
    unmeasured: dict[str, str] = {}
    """What it cannot tell of its node or its GPUs ("cpu_joules"), and why."""
    environment_id: str = ""
    """Short digest of the versions of all packages: what `scalestudy check --environment` shows."""
    environment_name: str = ""
    """Container image, or folder of the virtual environment."""


class Outcome(Record):
    """What is known of a finished run, wherever it was measured; None where nobody wrote it down.

    Analysis works on these. Of our own runs (`Result`) more must be known.
    """

    schema_version: Literal[1] = RESULT_SCHEMA
    name: str
    engine: str | None = None
    """What computed it; None where nobody wrote it down. Rows of different engines share no baseline."""
    strategy: str
    implementation: str
    communication: str | None = None
    """By what gradients were summed: "ring", "auto" (TensorFlow's choice of rings), "nccl", "gloo" or "mpi";
    None where nothing was exchanged, or it was not recorded."""
    local_steps: Annotated[int, Field(gt=0)] = 1
    """Steps after which several workers averaged their weights (local SGD); 1 where gradients were summed."""
    workers: Annotated[int, Field(gt=0)]
    seed: int | None = None
    swept: dict[str, Any] = {}
    per_worker_batch: Annotated[int, Field(gt=0)] | None = None
    global_batch: Annotated[int, Field(gt=0)] | None = None
    epochs: Count | None = None
    updates: int | None = None
    """Optimizer steps in all."""
    samples_processed: Count | None = None
    training_samples: Count | None = None
    """Size of the training set."""
    throughput: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Samples per second, really processed, over the steady epochs; None without any."""
    steady_epochs: Count | None = None
    """All but those in which a process began: the first, and those that were resumed."""
    training_seconds: Seconds | None = None
    """All epochs; no start-up, compilation or evaluation. Work lost with a killed process is not in it."""
    wall_seconds: Seconds | None = None
    """From the start of the process to its result; of a resumed run, of each process up to its checkpoint."""
    restarts: int = 0
    """How often the run went on from a checkpoint."""
    phases: dict[str, float] = {}
    """Where `wall_seconds` went, in seconds, by phase."""
    metric: str = ""
    """Name of the validation metric that is the quality; "" where no quality is known."""
    better: Better | None = None
    """Which way that metric is better; None where nothing says so."""
    bounded: bool | None = None
    """Whether that metric lies in [0, 1]; None where nothing says so."""
    quality: float | None = None
    """That metric over the whole validation set, of the model as it is saved."""
    quality_split: str = "validation"
    """Set it was measured on: "validation", or "test" when the source brings only a test set."""
    quality_labels: int | None = None
    """Number of labels in that set: one a sample, or one a pixel."""
    constant_quality: float | None = None
    """The best quality that one answer for every sample (or pixel) has there: a model's that has learned
    nothing. None where the task's outputs are not of classes."""
    validation: dict[str, float] = {}
    """Loss and metrics over the validation set, and metrics' values for each class ("iou_background")."""
    test: dict[str, float] = {}
    validation_matrices: dict[str, list[list[int]]] = {}
    """Confusion matrices over the validation set: a row for each true class, a column for each predicted."""
    test_matrices: dict[str, list[list[int]]] = {}
    class_names: list[str] = []
    """Of those rows and columns; empty where it was not recorded."""
    class_weights: list[float] | None = None
    """What multiplied the losses of each class's labels; None for 1."""
    best_quality: float | None = None
    """The best that this metric was after an epoch, as each was measured."""
    best_epoch: int | None = None
    parameters: int | None = None
    bucket_bytes: list[Count] = []
    """Bytes of one worker's gradients in each bucket that is summed over workers, in that order; empty
    where it was not recorded."""
    bucket_work: list[Count] = []
    """Multiplications of the forward pass, a sample, with the variables of each bucket; empty where the model
    does not tell, or it was not recorded."""
    precision: str | None = None
    """Arithmetic of the model, as in the study file; None where it was not recorded."""
    weights: str | None = None
    """What a model that takes pretrained weights began with: "imagenet", a file, "none"; else None."""
    input_scaling: str | None = None
    """What that model saw: "unit" or "pretrained"."""
    deterministic: bool | None = None
    """Whether every operation had to repeat bit for bit; None where it was not recorded."""
    weights_digest: str = ""
    """SHA-256 of all weights, equal on every rank."""
    model_missing: str | None = None
    """Why there is no `model.keras`; None where the run has saved it."""
    workers_lost: Count = 0
    """Workers of a run without common steps that ended before it did; the others did their work."""
    oversubscribed: str | None = None
    peak_memory_bytes: list[int] = []
    """Peak resident memory of each rank; of a resumed run, of the last process."""
    cpu_percent: list[float] = []
    """Mean utilisation of each rank's granted cores over the training time."""
    gpu_percent: list[float] = []
    """Mean utilisation of the GPUs of each rank that has any and can tell."""
    gpus: list[GpuUse] = []
    """What each GPU did over the training time, rank by rank; empty on CPUs."""
    processes: list[ProcessUse] = []
    """What each process used over the training time."""
    nodes: list[NodeUse] = []
    """What each node moved and drew over the training time, one for each."""
    usage_of: Literal["run", "last process"] = "last process"
    """Whether `gpus`, `processes`, `nodes` and `cpu_percent` are of the whole run, or only of its last
    process, where it was resumed from a checkpoint without them."""
    flops_per_sample: float | None = None
    """Floating-point operations of a training step, forward and backward, divided by its samples; those of
    matrix products and convolutions, a multiplication and an addition each. None where not all are known."""
    flops_uncounted: list[str] = []
    """Operations that multiply and could not be counted, by their names in the engine."""
    began: Seconds | None = None
    """Unix time at which rank 0's process began; of a resumed run, its first process."""
    finished: str = ""
    """Time of day, ISO 8601, UTC."""
    by_script: bool = False
    """Whether a script of the user's own has trained and evaluated: it counted its samples, and gave its
    quality."""
    order: Order | None = None
    """Order in which the study's runs were taken."""
    place: Count | None = None
    """Place of the run in that order, from 0, as the study was when the run was started."""
    hosts: list[str] = []
    """Names of the nodes that it ran on, sorted; of a resumed run, of all its processes."""


class Result(Outcome):
    """`result.json`, written atomically once all is measured: its presence means that the run is done.

    It is the last of the run's files. Here stands what must be known of a run of ours; what each field means
    stands in `Outcome`. Only a run of a user's own script may lack a quality and the number of parameters.
    """

    seed: int
    per_worker_batch: Annotated[int, Field(gt=0)]
    global_batch: Annotated[int, Field(gt=0)]
    epochs: Count
    updates: int
    samples_processed: Count
    training_samples: Count
    throughput: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    steady_epochs: Count
    training_seconds: Seconds
    wall_seconds: Seconds
    phases: dict[str, float]
    metric: str
    weights_digest: str
    finished: str
