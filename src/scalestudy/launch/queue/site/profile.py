"""A site profile: what a cluster wants to be told before it runs a job."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from scalestudy.errors import UserError
from scalestudy.launch.queue.site.gpu_request import checked, of_whole_nodes
from scalestudy.launch.queue.site.time_limit import seconds
from scalestudy.study.feasible import Machine
from scalestudy.study.settings import Section
from scalestudy.units import bandwidth_of, latency_of

Bill = Literal["worker", "gpu", "core", "node"]
Count = Annotated[int, Field(gt=0, le=10_000)]
MEMORY = r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?"
"""Slurm's form of an amount of memory, in capitals or not."""
_LAUNCHER = re.compile(r"(?:[\w./:=,@%+ -]|\$\w+|\$\{\w+\})+", re.ASCII)


def _texts(value: Any) -> Any:
    # What this returns is read as Python, which wants tuples.
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


class Container(Section):
    """The container that workers run in."""

    image: str
    """Path of the image: a .sif file, a sandbox folder, a Charliecloud image folder, or a .sqsh file."""
    runtime: Literal["apptainer", "singularity", "charliecloud", "pyxis"] = "apptainer"
    """The program that runs it; "pyxis" is Slurm's plugin for enroot, by which srun starts every worker."""
    binds: tuple[str, ...] = Field(default=(), examples=[["/scratch/me/data"]])
    """More folders to see inside, as "/folder" or "/outside:/inside". The study's own are added."""
    overlay: Annotated[tuple[str, ...], BeforeValidator(_texts)] = Field(
        default=(), examples=["/scratch/me/overlay.ext3:ro"]
    )
    """Overlay image with software on top, or a list of them (Apptainer and Singularity); with ":ro" workers
    share it."""
    gpu: Literal["nv", "none"] = "nv"
    """Whether the driver's libraries are brought in when the job has GPUs. (Charliecloud's image must have
    them: `ch-fromhost --nvidia IMAGE`; "none" if binds bring them in.)"""
    cache: str | None = Field(default=None, examples=["$SCRATCH/apptainer"])
    """Folder for the runtime's cache, since home has a quota; scratch/RUNTIME when absent."""
    python: str = "python3"
    """Python inside the image, or in an overlay."""

    @field_validator("gpu", mode="before")
    @classmethod
    def _is_nvidias(cls, gpu: Any) -> Any:
        if gpu == "rocm":
            raise ValueError('"nv" or "none", since GPUs are known by NVIDIA\'s NVML, which AMD\'s have not,')
        return gpu

    @field_validator("image")
    @classmethod
    def _is_here(cls, image: str) -> str:
        if "://" in image or not image.strip():
            raise ValueError("the path of an image, since a job downloads nothing,")
        return image


def _container(value: Any) -> Any:
    # A path alone is an image. What this returns is read as Python, which wants tuples.
    if isinstance(value, str):
        return {"image": value}
    if isinstance(value, dict) and isinstance(value.get("binds"), list):
        return value | {"binds": tuple(value["binds"])}
    return value


class Site(Section):
    """A cluster as its users know it. The key names are a contract: site files hold on to them."""

    name: str
    """Named by its file."""
    partition: str | None = Field(default=None, examples=["gpu"])
    """Partition of the jobs (PBS: queue); the cluster's default when absent."""
    account: str | None = Field(default=None, examples=["my-project"])
    """Account that is charged."""
    bill: Bill = "worker"
    """Unit by whose hours the site charges: costs of a training are told in it."""
    qos: str | None = Field(default=None, examples=["normal"])
    """Quality of service (Slurm alone)."""
    constraint: str | None = Field(default=None, examples=["v100"])
    """Features that the nodes must have (PBS: a resource of the chunk, "system=polaris")."""
    gpus_per_node: Annotated[int, Field(ge=0, le=1000)] = 0
    """GPUs of a node; 0 for nodes without."""
    cpus_per_node: Count
    """Cores of a node that jobs may use."""
    exclusive: bool = True
    """Ask for whole nodes, which no other job shares while times are taken; false where the site forbids it
    or charges too much for it: the report then names the runs that shared a node."""
    memory_per_node: str | None = Field(default=None, examples=["180G"])
    """Memory of a node that jobs may use; the site's default when absent."""
    memory_scaling: Literal["share", "none"] = "share"
    """"share" has a job that shares its nodes ask for as large a part of the memory as of the cores or GPUs;
    "none" for all of it."""
    tasks_per_node: Count | None = Field(default=None, examples=[2])
    """Most workers of a node; when absent one for each GPU, or as many as the cores hold."""
    gpu_request: str = "--gres=gpu:{gpus}"
    """How GPUs are asked for; {gpus} is their number: of a node in "--gres=gpu:v100:{gpus}" and
    "--gpus-per-node={gpus}", of a process in "--gpus-per-task={gpus}", of the job in "--gpus={gpus}". Where a
    site gives out whole nodes only, a number as large as gpus_per_node, "--gres=gpu:a100:4"; "" where the
    partition alone brings its GPUs."""
    time_limit: str = "01:00:00"
    """Time limit of a job with one worker, as Slurm writes it: "1:30:00", "90" (minutes), "2-12"
    (days-hours), "2-12:30:00", or "infinite"."""
    time_limit_scaling: Literal["none", "workers"] = "none"
    """"workers" divides the time limit by the workers that share the work."""
    time_limit_minimum: str = "00:10:00"
    """Least time limit after scaling."""
    signal_lead: Annotated[int, Field(ge=10, le=3600)] = 120
    """Seconds before the limit at which a job writes a checkpoint and asks to be queued again."""
    requeue_limit: Annotated[int, Field(ge=0, le=1000)] = 10
    """How often a job may put itself back into the queue; every time it has come one time limit further."""
    comment: str | None = Field(default=None, examples=["project-x"])
    """Comment of the jobs, where the site reads one (Slurm alone); ours follows it."""
    modules: tuple[str, ...] = Field(default=(), examples=[["GCC/12", "Python/3.11"]])
    """Modules to load, in this order. None of CUDA, cuDNN or NCCL: the environment's packages bring them."""
    module_purge: bool = True
    """Unload all modules first (only where `modules` names any)."""
    proxies: dict[str, str] = Field(default_factory=dict, examples=[{"http_proxy": "http://proxy:3128"}])
    """Proxy variables set in the job; workers that talk over gRPC unset them again."""
    scratch: str | None = Field(default=None, examples=["$TMPDIR"])
    """Folder on fast local disks for temporary files."""
    launcher: str = "srun"
    """What starts the workers of several nodes: "srun" (PBS: mpiexec), "mpirun", "horovodrun", or words of
    your site such as "$MPIEXEC $FLAGS_MPI_BATCH"."""
    wrapper: tuple[str, ...] = Field(default=(), examples=[["zsh", "-l", "-c", 'exec "$@"', "zsh"]])
    """Words before each worker's command."""
    environment: str | None = Field(default=None, examples=["~/venvs/scalestudy"])
    """Virtual environment of the workers; the one that submits when absent."""
    container: Annotated[Container, BeforeValidator(_container)] | None = Field(
        default=None, examples=["~/images/scalestudy.sif"]
    )
    """Image that the workers run in: its path, or a table with image, runtime, binds, overlay, gpu, cache."""
    directives: tuple[str, ...] = Field(default=(), examples=[["--hint=nomultithread"]])
    """More #SBATCH or #PBS options, none of which may change what a job's layout says."""
    env: dict[str, str] = Field(default_factory=dict, examples=[{"NCCL_SOCKET_IFNAME": "ib0"}])
    """More environment variables of the workers; $NAME is left to the node."""
    network_bandwidth: str | None = Field(default=None, examples=["100Gbit"])
    """What the network carries to and from a node, all its cards together, as the site states it: for
    `scalestudy estimate --site`, like the four that follow."""
    network_latency: str | None = Field(default=None, examples=["2us"])
    """Time of the smallest message between two nodes."""
    node_bandwidth: str | None = Field(default=None, examples=["300GB"])
    """What the links between the devices of a node (NVLink, PCIe) carry to and from each."""
    node_latency: str | None = Field(default=None, examples=["5us"])
    """Time of the smallest message between two devices of a node."""
    storage_bandwidth: str | None = Field(default=None, examples=["10GB"])
    """What the shared file system gives to all nodes of a job together."""

    @field_validator("time_limit", "time_limit_minimum")
    @classmethod
    def _is_time(cls, text: str) -> str:
        seconds(text)
        return text

    @field_validator("time_limit_minimum")
    @classmethod
    def _ends(cls, text: str) -> str:
        if seconds(text) is None:
            raise ValueError("a time that ends")
        return text

    @field_validator("gpu_request")
    @classmethod
    def _asks_for_gpus(cls, text: str) -> str:
        return checked(text)

    @field_validator("memory_per_node")
    @classmethod
    def _is_memory(cls, text: str | None) -> str | None:
        if text is not None and not re.fullmatch(MEMORY, text, re.IGNORECASE | re.ASCII):
            raise ValueError('an amount of memory such as "180G"')
        return text

    @field_validator("network_bandwidth", "node_bandwidth", "storage_bandwidth")
    @classmethod
    def _is_bandwidth(cls, text: str | None) -> str | None:
        if text is not None:
            bandwidth_of(text)
        return text

    @field_validator("network_latency", "node_latency")
    @classmethod
    def _is_latency(cls, text: str | None) -> str | None:
        if text is not None:
            latency_of(text)
        return text

    @field_validator("launcher")
    @classmethod
    def _is_words(cls, text: str) -> str:
        if not text.strip() or not _LAUNCHER.fullmatch(text):
            raise ValueError("plain words and $VARIABLES, which a shell runs nothing of,")
        if "--container-" in text:  # single and mirrored need no launcher, and would start outside
            raise ValueError('[container] with runtime = "pyxis", and no --container-… options,')
        return text

    @field_validator("directives")
    @classmethod
    def _are_options(cls, directives: tuple[str, ...]) -> tuple[str, ...]:
        if not all(each.startswith("-") for each in directives):
            raise ValueError('a list of options of sbatch or qsub, such as ["--exclusive"],')
        return directives

    @field_validator("directives", "modules", "partition", "account", "qos", "constraint", "comment")
    @classmethod
    def _is_one_line(cls, value: Any) -> Any:
        for text in value if isinstance(value, tuple) else (value,):
            if text is not None and not (text.isprintable() and text.strip()):
                raise ValueError("a text on one line")
        return value

    @model_validator(mode="after")
    def _asks_for_enough(self) -> "Site":
        asked = of_whole_nodes(self.gpu_request)
        if asked is not None and asked < self.gpus_per_node:
            raise ValueError(f"a gpu_request of all {self.gpus_per_node} GPUs of a node, or with {{gpus}},")
        return self

    @model_validator(mode="after")
    def _holds_no_null(self) -> "Site":
        if "\\u0000" in self.model_dump_json():
            raise ValueError("texts without a null character, which no script can hold,")
        return self

    @field_validator("proxies", "env")
    @classmethod
    def _are_variables(cls, table: dict[str, str]) -> dict[str, str]:
        for name in table:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise ValueError(f"names of variables, not {name!r}")
        return table

    def with_container(self, image: str) -> "Site":
        """This site with another image, run as its container is; by Apptainer when it has none.

        Args:
            image: Its path, seen from the working folder.

        Raises:
            UserError: If it is not there.
        """
        path = Path(image).expanduser().absolute()
        if not path.exists():
            raise UserError("a container image", f"{path}, which does not exist", "Correct --container.")
        container = self.container or Container(image=image)
        changed = container.model_copy(update={"image": str(path).replace("$", "$$")})
        return self.model_copy(update={"container": changed, "environment": None})

    def warning(self, limit: int) -> int:
        """Seconds before a time limit of that many seconds at which a job is asked to stop."""
        return min(self.signal_lead, limit // 2)

    def machine(self) -> Machine:
        """Its nodes."""
        return Machine(self.gpus_per_node, self.cpus_per_node, True, self.tasks_per_node)
