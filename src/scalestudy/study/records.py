"""What a run writes down: the models of the files in its folder, read by everything downstream."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

RESULT_SCHEMA: Literal[1] = 1


class Record(BaseModel):
    """Base of the records. Unknown keys are kept out of the way, so newer folders stay readable."""

    # "NaN" as a text keeps the files strict JSON, and a diverged run readable.
    model_config = ConfigDict(
        extra="ignore", frozen=True, use_attribute_docstrings=True, ser_json_inf_nan="strings"
    )


class EpochRecord(Record):
    """One line of `epochs.jsonl`, appended by rank 0 after each epoch. All times in seconds."""

    epoch: int
    """Counted from 1."""
    steps: int
    samples: int
    """Samples really processed by all workers together in this epoch."""
    learning_rate: float
    """Rate of the epoch's last step."""
    loss: float
    """Mean training loss over the samples of the epoch."""
    train_seconds: float
    """Steps and the waiting for their input; no compilation, no evaluation."""
    input_seconds: float
    """Part of `train_seconds` spent waiting for input."""
    evaluation_seconds: float = 0.0
    elapsed_training_seconds: float
    """Sum of `train_seconds` up to and including this epoch."""
    validation: dict[str, float] = {}
    """Loss and metrics over the whole validation set; empty when this epoch was not evaluated."""
    resumed: bool = False
    """Whether a process went on into this epoch from a checkpoint: it warms up, as in the first."""


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
    updated: float
    """Unix time of this record."""


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


class JobRecord(Record):
    """`job.json`: the job of a queue that a run was given to."""

    queue: str = "slurm"
    """Name of the launcher that gave it there."""
    job: str
    """Id of the job, "123", or of its task of an array, "123_4"."""
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
    placement_source: str
    cpus: list[int]
    """Cores granted to this process, as the kernel says."""
    threads: int
    devices: list[str]
    """As the framework names them."""
    device_uuids: list[str] = []
    """UUIDs of its GPUs, or of their MIG instances, where NVML says them; empty on CPUs."""
    versions: dict[str, str]
    """Of Python, TensorFlow, Keras, Horovod, NumPy and Scalestudy, where installed."""
    build: dict[str, Any] = {}
    """Library builds: TensorFlow's CUDA and cuDNN, Horovod's controllers."""
    driver: str | None = None
    kernel: str = ""
    cpu_model: str = ""
    memory_bytes: int = 0
    environment: dict[str, str] = {}
    """Environment variables that change how it runs."""
    environment_id: str = ""
    """Short digest of the versions of all packages: what `scalestudy env` shows."""
    environment_name: str = ""
    """Container image, or folder of the virtual environment."""


class Result(Record):
    """`result.json`, written last and atomically: its presence means that the run is done."""

    schema_version: Literal[1] = RESULT_SCHEMA
    name: str
    strategy: str
    implementation: str
    workers: int
    seed: int
    swept: dict[str, Any] = {}
    per_worker_batch: int
    global_batch: int
    epochs: int
    updates: int
    """Optimizer steps in all."""
    samples_processed: int
    training_samples: int
    """Size of the training set."""
    throughput: float | None
    """Samples per second, really processed, over the steady epochs; None without any."""
    steady_epochs: int
    """All but those in which a process began: the first, and those that were resumed."""
    training_seconds: float
    """All epochs; no start-up, compilation or evaluation. Work lost with a killed process is not in it."""
    wall_seconds: float
    """From the start of the process to its result; of a resumed run, of each process up to its checkpoint."""
    restarts: int = 0
    """How often the run went on from a checkpoint."""
    phases: dict[str, float]
    """Where `wall_seconds` went, in seconds, by phase."""
    metric: str
    """Name of the validation metric that is the quality (higher is better)."""
    quality: float
    """That metric after the last epoch, over the whole validation set."""
    quality_split: str = "validation"
    """Set it was measured on: "validation", or "test" when the source brings only a test set."""
    validation: dict[str, float] = {}
    test: dict[str, float] = {}
    best_quality: float
    best_epoch: int
    parameters: int
    weights_digest: str
    """SHA-256 of all weights, equal on every rank."""
    oversubscribed: str | None = None
    peak_memory_bytes: list[int] = []
    """Peak resident memory of each rank; of a resumed run, like the utilisation, of the last process."""
    cpu_percent: list[float] = []
    """Mean utilisation of each rank's granted cores over the training time."""
    gpu_percent: list[float] = []
    finished: str
    """Time of day, ISO 8601, UTC."""
