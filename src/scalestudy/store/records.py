"""What a run records: the models of the JSON files in its folder."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from scalestudy.config.metric_senses import Better

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Amount
SHARED_CORES = "cores shared with another study"
"""`Outcome.oversubscribed` of a run that was planned to have its own cores, and is disturbed for it."""
PROVING_STEPS = 3
"""Steps whose losses must agree to show equal updates: the first only shows equal initial weights."""


class Record(BaseModel):
    """Base of the records. Unknown keys are ignored, so that records of newer versions can be read."""

    # Written as the text "NaN", so that the files are strict JSON and diverged runs can be read.
    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
        ser_json_inf_nan="strings",
    )


class GpuUse(Record):
    """Use of one GPU over the training time; None for values that the card or its driver does not report."""

    rank: int
    device: int
    """Its index in the rank's `device_uuids`."""
    percent: float | None = None
    """Mean utilisation: share of time in which it computed. Not reported for MIG instances."""
    memory_percent: float | None = None
    """Mean share of time in which its memory was read or written. Not reported for MIG instances."""
    memory_bytes: Count | None = None
    """Peak memory in use by all processes; a framework may reserve all memory at its start."""
    memory_total_bytes: Count | None = None
    """Total memory."""
    allocated_bytes: Count | None = None
    """Peak memory that the framework used for tensors."""
    reserved_bytes: Count | None = None
    """Peak memory that PyTorch's allocator held, with unused blocks. TensorFlow does not report it."""
    watts: float | None = None
    """Mean power of the card."""
    joules: float | None = None
    """Energy of the card."""
    energy_from: Literal["counter", "power"] | None = None
    """Whether the card counted the energy, or its power was sampled once a second and integrated."""


class ProcessUse(Record):
    """Use of cores by one process."""

    rank: int
    cpu_seconds: Amount | None = None
    """CPU time of all its threads."""


class NodeUse(Record):
    """A node of a run."""

    rank: int
    """Rank of its first process."""


class EpochOutcome(Record):
    """What is known about an epoch of any run; None if it was not recorded. Times in seconds."""

    epoch: int
    """Counted from 1."""
    steps: int | None = None
    samples: int | None = None
    """Samples processed by all workers together in this epoch."""
    learning_rate: float | None = None
    """Rate of the epoch's last step."""
    loss: float | None = None
    """Mean training loss over the samples of the epoch."""
    not_finite: str | None = None
    """Name of the model's first weight that is not finite, after an epoch whose loss is not; else None."""
    train_seconds: float | None = None
    """Time of steps and of waiting for input, without compilation and evaluation."""
    input_seconds: float | None = None
    """Part of `train_seconds` that was spent waiting for input."""
    evaluation_seconds: float = 0.0
    elapsed_training_seconds: float | None = None
    """Sum of `train_seconds` up to and including this epoch."""
    validation: dict[str, float] = Field(default_factory=dict)
    """Loss and metrics on the whole validation set, also for each class; empty if the epoch was not
    evaluated."""
    resumed: bool = False
    """Whether a process resumed in this epoch from a checkpoint, and so warmed up as in the first epoch."""


class EpochRecord(EpochOutcome):
    """One line of `epochs.jsonl`, appended by rank 0 after each epoch.

    Only runs of user scripts may lack the learning rate, the loss and the time of waiting for input.
    """

    steps: int
    samples: int
    train_seconds: float
    elapsed_training_seconds: float


class Progress(Record):
    """`progress.json`, replaced by rank 0 about once a second while the run is alive."""

    phase: Literal["start-up", "compile", "training", "evaluation", "saving"]
    epoch: int
    """Current epoch, counted from 1 (0 before the first)."""
    epochs: int
    """Number of epochs."""
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
    """How often the run was resumed from a checkpoint."""
    cpu_percent: float | None = None
    """Utilisation of rank 0's cores since the previous record; None before training."""
    gpu_percent: float | None = None
    """Latest mean utilisation of rank 0's GPUs; None on CPUs, and for cards that do not report it."""
    updated: float
    """Unix time of this record."""


class Sign(Record):
    """`signs/N.json`, replaced by rank N about once a second: its sign of life and its progress."""

    rank: int
    host: str
    pid: int
    phase: str
    """Current activity: "framework", "join", "build", "compile", "input", "step", "callbacks", …"""
    epoch: int = 0
    """Current epoch, counted from 1 (0 before the first)."""
    step: int = 0
    """Steps done in this epoch."""
    marks: int
    """How often it has made progress; equal on all ranks at the same place of the program."""
    moved: float
    """Unix time of its latest progress, by the clock of its host."""
    due: float
    """Seconds after `moved` within which it must make progress again."""
    written: float
    """Unix time of this record, which is replaced as long as the process lives."""


class Disturbance(Record):
    """`disturbance.json`: other programs on the cores of a run on this machine."""

    share: float
    """Share of the cores' time that they used."""

    @property
    def words(self) -> str:
        """What they did, in words."""
        return f"other programs used {self.share:.0%} of its cores"


class Hang(Record):
    """`signs/hang.json`: why a watchdog stopped the run."""

    rank: int | None
    """Rank that stopped first; None if all ranks are at the same place."""
    host: str = ""
    phase: str = ""
    """Its activity; "" for a rank that never gave a sign of life."""
    epoch: int = 0
    step: int = 0
    seconds: float
    """Seconds without progress."""
    lives: bool = True
    """Whether its process still gives signs of life; a stopped process and one on a lost node do not."""


class Failure(Record):
    """`failure.json`, written by the process that owns the workers when a run has failed."""

    rank: int | None
    """Rank that failed first, if known."""
    exit_code: int | None
    signal: str | None = None
    reason: str
    """One sentence."""
    tail: list[str] = Field(default_factory=list)
    """Last lines of that rank's log."""
    cancelled: bool = False
    """Whether a person cancelled it."""
    job_state: str | None = None
    """Last state of the job in the queue ("TIMEOUT", "NODE_FAIL", "CANCELLED", …); None without a queue."""


class Stopped(Record):
    """`stopped.json`: the answer to a request to stop, written after the checkpoint to continue from."""

    epoch: int
    """Epoch that the checkpoint is in, counted from 1."""
    step: int
    """Steps done in this epoch."""


class Cause(Record):
    """`causes/N.json`: how rank N ended, or was stopped, before its work was done."""

    rank: int
    time: float
    """Unix time, by the clock of its host."""
    host: str = ""
    kind: Literal["exception", "sys.exit", "os._exit", "exit", "signal", "stopped"]
    """How it ended. "os._exit" means without an exception; for "exit" it is unknown whether there was one."""
    exit_code: int | None = None
    signal: str | None = None
    """The signal that ended or stopped it, such as "SIGKILL"."""
    words: str = ""
    """The exception or call: "ValueError: no such thing", "sys.exit(3)"."""
    frame: str = ""
    """Place in the user's files: "task.py, line 7, in model"; "" if it was in none of them."""
    oom_kills: int | None = None
    """Processes of its cgroup ended by the kernel's out-of-memory killer during the run; None if unknown."""


class JobRecord(Record):
    """`job.json`: the queue's job of a run. It is written before the job is submitted."""

    queue: str = "slurm"
    """Name of the launcher that submitted it."""
    job: str
    """Id of the job; "" until the queue has answered."""
    submission: str = ""
    """Random digits that the job's script contains, too: the run folder belongs to this job alone."""
    submitted: float
    """Unix time."""
    site: str
    """Name of the site profile."""
    script: str
    """Path of the job script."""
    attempt: int = 1
    """How often this point has been submitted, including this time; not counting jobs that were cancelled
    before they started."""
    cluster: str = ""
    """The queue's name of the cluster, since another cluster may use the same id."""


class Allocation(Record):
    """What a job of a run held, all of which its site bills from start to end."""

    job: str
    nodes: int
    cores: int
    gpus: int
    began: float
    """Unix time."""
    ended: float | None = None
    """Unix time; None while it runs, and if it was ended by force."""


class Allocations(Record):
    """`allocations.json`: the allocations of a run's jobs, one after another."""

    jobs: tuple[Allocation, ...] = ()


class RankRecord(Record):
    """`ranks/N.json`, in the end a line of `ranks.jsonl`: the environment of one rank."""

    rank: int
    size: int
    local_rank: int
    host: str
    pid: int
    began: float | None = None
    """Unix time at which its process started, by the clock of its host."""
    placement_source: str
    cpus: list[int]
    """Cores granted to this process by the kernel."""
    threads: int
    devices: list[str]
    """Its devices, as the framework names them."""
    device_uuids: list[str] = Field(default_factory=list)
    """UUIDs of its GPUs, or of their MIG instances, as NVML reports them; empty on CPUs."""
    nodes_shared: bool | None = None
    """Whether other jobs could use the job's nodes, according to the queue; None without a queue."""
    versions: dict[str, str]
    """Versions of Python, NumPy, Scalestudy and the packages that its engine needs."""
    build: dict[str, Any] = Field(default_factory=dict)
    """Builds of the framework and its libraries: CUDA and cuDNN, Horovod's controllers."""
    driver: str | None = None
    kernel: str = ""
    cpu_model: str = ""
    memory_bytes: int = 0
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment variables that affect the run."""
    unmeasured: dict[str, str] = Field(default_factory=dict)
    """Quantities that could not be measured on its node or GPUs (such as "gpu_joules"), and why."""
    environment_id: str = ""
    """Short digest of the versions of all packages."""
    environment_name: str = ""
    """Container image, or folder of the virtual environment."""


class Timing(Record):
    """What a timing run measured, and how long the training is that it stands for.

    `analysis.study_runs` computes the time of that training.
    """

    warm_up_steps: Count
    """Steps before the measured ones."""
    warm_up_seconds: Seconds
    steps: Annotated[int, Field(gt=0)]
    """Measured steps."""
    seconds: Seconds
    """Their time, with the waiting for input."""
    evaluations: list[Seconds]
    """Time of the first evaluation, which compiles, and of a second one if the training has several."""
    training_epochs: Count
    training_updates: Count
    training_samples: Count
    """Samples that all epochs of the training process."""
    training_evaluations: Count
    losses: list[float]
    """Mean loss over all workers of each of the first calls, up to the one with step `PROVING_STEPS`."""


class Outcome(Record):
    """What is known about a finished run from any source; None if it was not recorded.

    Analysis works on these. For our own runs (`Result`), more fields are required.
    """

    # A literal, so that a record of another layout is refused and not misread.
    schema_version: Literal[1] = 1
    name: str
    engine: str | None = None
    """The engine; None if it was not recorded. Rows of different engines share no baseline."""
    strategy: str
    implementation: str
    communication: str | None = None
    """What summed the gradients: "ring", "auto" (TensorFlow's choice of rings), "nccl", "gloo" or "mpi"; None
    if nothing was exchanged or it was not recorded."""
    workers: Annotated[int, Field(gt=0)]
    seed: int | None = None
    swept: dict[str, Any] = Field(default_factory=dict)
    per_worker_batch: Annotated[int, Field(gt=0)] | None = None
    global_batch: Annotated[int, Field(gt=0)] | None = None
    epochs: Count | None = None
    updates: int | None = None
    """Total number of optimizer steps."""
    samples_processed: Count | None = None
    training_samples: Count | None = None
    """Size of the training set."""
    throughput: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Samples processed per second in the steady epochs; None if there are none."""
    steady_epochs: Count | None = None
    """Number of steady epochs, in which no process started: all but the first and resumed ones."""
    training_seconds: Seconds | None = None
    """Training time of all epochs, without start-up, compilation, evaluation, and work lost when a process
    ended."""
    wall_seconds: Seconds | None = None
    """From the start of the process to its result; if resumed, of each process up to its checkpoint."""
    restarts: int = 0
    """How often the run was resumed from a checkpoint."""
    phases: dict[str, float] = Field(default_factory=dict)
    """Seconds of each phase; they add up to `wall_seconds`."""
    metric: str = ""
    """Name of the metric that is the quality; "" if no quality is known."""
    better: Better | None = None
    """Whether "higher" or "lower" is better; None if unknown."""
    bounded: bool | None = None
    """Whether the metric lies in [0, 1]; None if unknown."""
    quality: float | None = None
    """The metric of the saved model on the whole validation set."""
    quality_split: str = "validation"
    """Set on which quality was measured: "validation", or "test" if the source has only a test set."""
    quality_labels: int | None = None
    """Number of labels in that set: one for each sample, or for each pixel."""
    evaluated_samples: Count | None = None
    """Samples on which a script's workers together measured the quality, each counted as often as it was
    evaluated; None if the script does not count them."""
    constant_quality: float | None = None
    """Quality of the best constant prediction, which a model that has learned nothing reaches. None if the
    outputs are not classes."""
    validation: dict[str, float] = Field(default_factory=dict)
    """Loss and metrics on the validation set, also for each class ("iou_background")."""
    test: dict[str, float] = Field(default_factory=dict)
    class_names: list[str] = Field(default_factory=list)
    """Names of the classes; empty if they were not recorded."""
    class_weights: list[float] | None = None
    """Factor of the loss of each class; None for 1."""
    best_quality: float | None = None
    """The best quality measured after any epoch."""
    best_epoch: int | None = None
    parameters: int | None = None
    precision: str | None = None
    """Arithmetic of the model, as in the study file; None if it was not recorded."""
    weights: str | None = None
    """Initial weights of a pretrained model: "imagenet", a file, or "none"; None for other models."""
    input_scaling: str | None = None
    """Input of a pretrained model: "unit" or "pretrained"."""
    deterministic: bool | None = None
    """Whether operations were required to repeat bit for bit; None if it was not recorded."""
    initial_statistics: float | None = None
    """Share of their initial values that batch normalisation's moving statistics still held, if quality was
    measured with them; None if it was not, or is unknown."""
    weights_digest: str = ""
    """SHA-256 of all weights, equal on every rank."""
    shapes_digest: str = ""
    """SHA-256 of the shapes and types of all weights, in their order; "" if it was not recorded."""
    initial_digest: str = ""
    """SHA-256 of all weights before training, as the seed makes them; "" if it was not recorded."""
    model_missing: str | None = None
    """Why there is no saved model; None if there is one."""
    oversubscribed: str | None = None
    """Why its times do not count: more workers than cores or GPUs, or `SHARED_CORES`."""
    peak_memory_bytes: list[int] = Field(default_factory=list)
    """Peak resident memory of each rank; for a resumed run, of its last process."""
    cpu_percent: list[float] = Field(default_factory=list)
    """Mean utilisation of each rank's granted cores over the training time."""
    gpu_percent: list[float] = Field(default_factory=list)
    """Mean utilisation of the GPUs of each rank with GPUs that report it."""
    gpus: list[GpuUse] = Field(default_factory=list)
    """Use of each GPU in the training time, rank by rank; empty on CPUs."""
    processes: list[ProcessUse] = Field(default_factory=list)
    """Use of each process in the training time."""
    nodes: list[NodeUse] = Field(default_factory=list)
    """Use of each node in the training time."""
    usage_of: Literal["run", "last process"] = "last process"
    """Whether `gpus`, `processes`, `nodes` and `cpu_percent` cover the whole run, or only its last process
    if it was resumed from a checkpoint without them."""
    flops_per_sample: float | None = None
    """Floating-point operations of a training step, forward and backward, divided by its samples: matrix
    products and convolutions, with a multiplication and an addition each. None if any are unknown."""
    flops_uncounted: list[str] = Field(default_factory=list)
    """Names of the engine's operations that multiply but could not be counted."""
    began: Seconds | None = None
    """Unix time at which rank 0's process began; for a resumed run, its first process."""
    finished: str = ""
    """Date and time in ISO 8601, UTC."""
    by_script: bool = False
    """Whether a user's script trained and evaluated: it counted its samples and reported its quality."""
    place: Count | None = None
    """Place of the run in the order of the study, from 0, among its points when the run was started."""
    blocks: Count | None = None
    """Number of seeds and splits of the study when the run was started."""
    hosts: list[str] = Field(default_factory=list)
    """Names of the nodes that it ran on, sorted; for a resumed run, of all its processes."""
    timing: Timing | None = None
    """Set for a timing run, which ended when its step time was known; None for a training."""


class Result(Outcome):
    """`result.json`, written atomically after all measurements: its presence means that the run is done.

    It is the last of the run's files. The fields here are required for our own runs; `Outcome` describes
    them. Only runs of user scripts may lack the quality and the number of parameters.
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
