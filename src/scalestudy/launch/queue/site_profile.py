"""Site profiles: the settings of a cluster for jobs, and how they are read and checked."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from scalestudy.config.key_lines import KeyLines
from scalestudy.config.keys import (
    UndefinedVariable,
    expand_variables,
    shown,
    suggestion,
)
from scalestudy.config.machine import Machine
from scalestudy.config.removed import what_instead
from scalestudy.config.settings import WITHOUT_SITE, StrictModel
from scalestudy.config.toml_text import read_text, toml_table
from scalestudy.launch.environments import is_image
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError

LONGEST = 10_000 * 24 * 3600
"""Longest time limit in seconds; more is taken for a mistake."""
NO_REQUEUE = {"--no-requeue", "-r n"}
"""Directives, of Slurm and PBS, by which a site forbids that its jobs are put back into the queue."""
TIME_FORM = (
    'a time above 0, of at most 10000 days, as Slurm writes it: "1:30:00", "90" (minutes), "2-12" '
    '(days-hours), "infinite"'
)
GPU_FORM = (
    'an option with {gpus} in it, such as "--gres=gpu:{gpus}" (PBS: "ngpus={gpus}"), all GPUs of a node '
    '("--gres=gpu:a100:4"), or "" if the partition alone provides them'
)
_GPUS = re.compile(
    r"((--gres|--gpus-per-node|--gpus-per-task|--gpus)=)?[A-Za-z0-9_.:,()+={}-]*"
)
_GPU_COUNT = re.compile(
    r"\{gpus\}|(--gres=gpu:|--gpus-per-node=)([A-Za-z][\w.-]*:)?\d",
    re.ASCII,
)
STARTERS = ("srun", "mpirun", "mpiexec", "hydra")
"""Launchers that are given the numbers of a point's nodes and processes."""
_NUMBERS = re.compile(
    r"-(n|np|c|N|ppn)\d*|--?(ntasks|nodes|np|n)(=.*)?|--ntasks-per-node(=.*)?"
)
_LAUNCHER = re.compile(r"(?:[\w./:=,@%+^ -]|\$\w+|\$\{\w+\})+", re.ASCII)
Bill = Literal["worker", "gpu", "core", "node"]
Count = Annotated[int, Field(gt=0, le=10_000)]
_INIT = "`scalestudy site init NAME` writes one with every key explained."


def seconds(text: str) -> int | None:
    """Convert a time in one of the forms of sbatch(1), --time, to seconds; None for no limit.

    Raises:
        ValueError: If the text has another form, or is 0. Minutes and seconds over 59 after a larger unit are
            taken for a mistake.
    """
    if text.strip().lower() in ("infinite", "unlimited", "-1"):
        return None
    match = re.fullmatch(
        r"(?:(\d+)-)?(\d+)(?::(\d\d))?(?::(\d\d))?",
        text.strip(),
        re.ASCII,
    )
    days, *parts = None, "0"
    if match is not None:
        days, *parts = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    alone = days is None and len(numbers) < 3
    if alone:
        # Minutes, and perhaps seconds.
        numbers = [0, *numbers]
    # The text may end after any unit: what is left out is 0.
    hours, minutes, rest = [*numbers, 0, 0][:3]
    total = ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + rest
    if (minutes > 59 and not alone) or rest > 59 or not 0 < total <= LONGEST:
        raise ValueError(TIME_FORM)
    return total


def notation(total: int | None) -> str:
    """Convert seconds to Slurm's notation, rounded up to a minute, which is Slurm's resolution."""
    if total is None:
        return "UNLIMITED"
    # Up, since a limit of 0 minutes would mean none.
    minutes = -(-total // 60)
    days, minutes = divmod(minutes, 24 * 60)
    clock = f"{minutes // 60:02}:{minutes % 60:02}:00"
    if days:
        return f"{days}-{clock}"
    return clock


def memory_bytes(text: str) -> int:
    """Convert a memory request of Slurm, such as "180G", to bytes; a bare number is in MiB.

    Raises:
        ValueError: If the text has another form.
    """
    match = re.fullmatch(
        r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?",
        text.strip(),
        re.IGNORECASE | re.ASCII,
    )
    if match is None:
        raise ValueError('an amount of memory such as "180G"')
    return int(float(match[1]) * 1024 ** ("KMGT".index(match[2].upper() or "M") + 1))


def _line(text: str) -> None:
    if not (text.isprintable() and text.strip()):
        raise ValueError("a text on one line")


def _readable(parse: Callable[[str], object]) -> AfterValidator:
    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


Line = Annotated[str, _readable(_line)]


TimeLimit = Annotated[str, _readable(seconds)]


class Container(StrictModel):
    """The container that workers run in."""

    image: str
    """Path of the image: a .sif file or a sandbox folder."""
    runtime: Literal["apptainer", "singularity"] = "apptainer"
    """Program that runs the image. For another one, write its command in `wrapper`."""
    binds: tuple[str, ...] = Field(default=(), examples=[["/scratch/me/data"]])
    """More folders that are visible inside, as "/folder" or "/outside:/inside". The study's are added."""
    python: str = "python3"
    """Python inside the image."""

    @field_validator("image")
    @classmethod
    def _is_here(cls, image: str) -> str:
        if "://" in image or not image.strip():
            raise ValueError("the path of an image, since jobs do not download,")
        return image


def container_table(value: Any) -> Any:
    """Return the table of a container, also from the path of an image alone, with lists as tuples."""
    if isinstance(value, str):
        return {"image": value}
    if isinstance(value, dict) and isinstance(value.get("binds"), list):
        return value | {"binds": tuple(value["binds"])}
    return value


class Site(StrictModel):
    """A cluster as its users know it. Users' site files rely on the names of the keys."""

    name: str
    """Named by its file."""
    partition: Line | None = Field(default=None, examples=["gpu"])
    """Partition of the jobs (PBS: queue). By default, the cluster's."""
    account: Line | None = Field(default=None, examples=["my-project"])
    """Account to charge."""
    bill: Bill = "worker"
    """Unit whose hours the site charges; the report states costs in it."""
    qos: Line | None = Field(default=None, examples=["normal"])
    """Quality of service (Slurm only)."""
    constraint: Line | None = Field(default=None, examples=["v100"])
    """Features that the nodes must have (PBS: a resource of the chunk, "system=polaris")."""
    gpus_per_node: Annotated[int, Field(ge=0, le=1000)] = 0
    """GPUs of a node; 0 for nodes without GPUs."""
    cpus_per_node: Count
    """Cores of a node that jobs may use."""
    exclusive: bool | None = Field(default=None, examples=[True])
    """Whether to ask for whole nodes, so that no other job disturbs the measurement. By default, only if
    `bill` is "node", since whole nodes are charged anyway. The report names the runs that shared a node."""
    memory_per_node: Annotated[str, _readable(memory_bytes)] | None = Field(
        default=None,
        examples=["180G"],
    )
    """Memory of a node that jobs may use. By default, the site's. A job that shares its nodes asks for the
    same part of it as of the cores or GPUs. With "0" every job gets all memory of its nodes (Slurm only)."""
    tasks_per_node: Count | None = Field(default=None, examples=[2])
    """Maximum number of workers on a node. By default, one for each GPU, or as many as there are cores
    for."""
    gpu_request: str = "--gres=gpu:{gpus}"
    """Option that asks for GPUs; {gpus} is their number: of a node in "--gres=gpu:v100:{gpus}" and
    "--gpus-per-node={gpus}", of a process in "--gpus-per-task={gpus}", of the job in "--gpus={gpus}". If the
    site gives out whole nodes only, write all GPUs of a node, "--gres=gpu:a100:4"; if the partition alone
    brings its GPUs, write ""."""
    time_limit: TimeLimit = "01:00:00"
    """Time limit of a job, as Slurm writes it: "1:30:00", "90" (minutes), "2-12" (days-hours), "2-12:30:00",
    or "infinite"."""
    requeues: Annotated[int, Field(ge=0, le=1000)] = 10
    """How often a job that has reached its time limit may put itself back into the queue, each time for one
    more time limit. With 0 it is never put back, not even after a preemption, as some centres demand;
    `submit` continues it. (PBS: only 0 matters, since jobs cannot put themselves back.)"""
    signal_lead: Annotated[int, Field(ge=10, le=7200)] = 120
    """Seconds before the time limit at which a job begins to write a checkpoint and ends. Raise it if
    checkpoints are large."""
    modules: tuple[Line, ...] = Field(default=(), examples=[["GCC/12", "Python/3.11"]])
    """Modules to load, in this order. Do not name CUDA, cuDNN or NCCL: the environment's packages hold
    them."""
    module_purge: bool | None = Field(default=None, examples=[True])
    """Whether to unload all modules first. By default, if `modules` names any."""
    scratch: str | None = Field(default=None, examples=["$TMPDIR"])
    """Folder for temporary files on a fast local disk."""
    launcher: str = "srun"
    """Command that starts the workers on several nodes: "srun" (PBS: mpiexec), "mpirun", either with more
    options ("mpirun -mca btl ^openib"), or your site's own, such as "$MPIEXEC $FLAGS_MPI_BATCH"."""
    wrapper: tuple[str, ...] = Field(
        default=(),
        examples=[["zsh", "-l", "-c", 'exec "$@"', "zsh"]],
    )
    """Command that wraps each worker's command."""
    environment: str | None = Field(default=None, examples=["~/venvs/scalestudy"])
    """Virtual environment of the workers. By default, the one that submits."""
    container: Annotated[Container, BeforeValidator(container_table)] | None = Field(
        default=None,
        examples=["~/images/scalestudy.sif"],
    )
    """Container image for the workers: its path, or a table with image, runtime, binds, python."""
    directives: tuple[Line, ...] = Field(
        default=(),
        examples=[["--hint=nomultithread"]],
    )
    """More #SBATCH or #PBS options. They must not change the nodes, tasks, cores or GPUs of a job."""
    env: dict[str, str] = Field(
        default_factory=dict,
        examples=[{"NCCL_SOCKET_IFNAME": "ib0"}],
    )
    """More environment variables for the workers, also proxies, which workers that communicate over gRPC
    unset. $NAME is replaced on the node."""

    @field_validator("gpu_request")
    @classmethod
    def _asks_for_gpus(cls, text: str) -> str:
        if text and not (_GPUS.fullmatch(text) and _GPU_COUNT.search(text)):
            raise ValueError(GPU_FORM)
        return text

    @field_validator("launcher")
    @classmethod
    def _is_words(cls, text: str) -> str:
        if not text.strip() or not _LAUNCHER.fullmatch(text):
            raise ValueError("plain words and $VARIABLES, without shell commands,")
        starter, *options = text.split()
        if starter in STARTERS and any(map(_NUMBERS.fullmatch, options)):
            raise ValueError(
                f"{starter} without numbers of nodes and processes, which every point has,"
            )
        return text

    @property
    def starter(self) -> str:
        """The launcher without its options; "" for one of the site's own."""
        first = self.launcher.split()[0]
        if first in STARTERS:
            return first
        return ""

    @property
    def starter_options(self) -> list[str]:
        """The options of that launcher, as words of bash."""
        return self.launcher.split()[1:]

    @field_validator("directives")
    @classmethod
    def _are_options(cls, directives: tuple[str, ...]) -> tuple[str, ...]:
        if not all(option.startswith("-") for option in directives):
            raise ValueError(
                'a list of options of sbatch or qsub, such as ["--nodelist=n1"],'
            )
        return directives

    @model_validator(mode="after")
    def _is_possible(self) -> "Site":
        if self.container is not None and self.environment is not None:
            raise ValueError(
                "an environment or a container, not both (container.python names its Python),"
            )
        # TOML can write it, but neither bash nor an environment variable can hold it.
        if "\\u0000" in self.model_dump_json():
            raise ValueError("strings without a null character,")
        return self

    @field_validator("env")
    @classmethod
    def _are_variables(cls, table: dict[str, str]) -> dict[str, str]:
        for name in table:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise ValueError(f"names of variables, not {name!r}")
        return table

    def in_environment(self, place: str | None) -> "Site":
        """Return this site with another environment or container image; unchanged for None."""
        if place is None:
            return self
        # The path is known here: no shell of a node may expand it.
        path = place.replace("$", "$$")
        if not is_image(place):
            return self.model_copy(update={"environment": path, "container": None})
        container = self.container or Container(image=path)
        container = container.model_copy(update={"image": path})
        return self.model_copy(update={"container": container})

    @property
    def whole_nodes(self) -> bool:
        """Whether jobs request whole nodes."""
        if self.exclusive is not None:
            return self.exclusive
        # A site that bills nodes charges for the rest of a node, too.
        return self.bill == "node"

    def warning(self, limit: int) -> int:
        """Return how many seconds before its time limit (in seconds) a job is asked to stop."""
        # With a limit shorter than the lead, a job would be asked to stop as it starts.
        return min(self.signal_lead, limit // 2)

    @property
    def most_requeues(self) -> int:
        """How often a job may put itself back into the queue; 0 if a directive forbids it."""
        if NO_REQUEUE & set(self.directives):
            return 0
        return self.requeues

    @property
    def purges_modules(self) -> bool:
        """Whether jobs unload all modules first."""
        if self.module_purge is not None:
            return self.module_purge
        return bool(self.modules)

    def machine(self) -> Machine:
        """Return the description of its nodes."""
        return Machine(
            self.gpus_per_node,
            self.cpus_per_node,
            True,
            self.tasks_per_node,
        )


def sites_folder() -> Path:
    """Return the folder of the user's site profiles: `~/.config/scalestudy/sites`, or by XDG_CONFIG_HOME."""
    import platformdirs

    return Path(platformdirs.user_config_dir("scalestudy")) / "sites"


def list_sites() -> list[str]:
    """Return the names of the user's site profiles."""
    return sorted(path.stem for path in sites_folder().glob("*.toml"))


def find_site(name: str | None, base: Path) -> Site:
    """Load the site profile with this name or path; without a name, the user's only one.

    Args:
        name: `launch.site`: a name, or a path (with a slash or ending in .toml).
        base: Folder to which a relative path refers.

    Raises:
        UserError: If there is none, or if it is invalid; the message names the line.
    """
    known = list_sites()
    listed = f"Known: {', '.join(known)}. " if known else ""
    if name is None:
        if len(known) == 1:
            return load_site(sites_folder() / f"{known[0]}.toml")
        choice = f"none in {sites_folder()}"
        if known:
            choice = f"{len(known)} to choose from"
        raise UserError(
            "the name of a site profile, in launch.site",
            f"none, and {choice}",
            f'{listed}Write site = "NAME" under [launch]; {_INIT}',
        )
    if name.endswith(".toml") or "/" in name:
        path = base / Path(name).expanduser()
    else:
        path = sites_folder() / f"{name}.toml"
    if not path.is_file():
        close = suggestion(name, known)
        meant = listed
        if close:
            meant = f'Did you mean "{close}"? '
        raise UserError(f"a site profile at {path}", "no such file", f"{meant}{_INIT}")
    return load_site(path)


def load_site(path: Path) -> Site:
    """Read a site profile.

    Raises:
        UserError: If it is invalid; the message names the line.
    """
    text = read_text(path)
    table = toml_table(text, path.name)
    place = KeyLines.read(text, path.name)
    table = {"name": path.stem, **table}
    _refuse_unknown(table, Site, "", place)
    if isinstance(table.get("container"), dict):
        _refuse_unknown(table["container"], Container, "container.", place)
    try:
        # Strict validation of JSON rejects "8" for 8, but accepts a list for a tuple.
        site = Site.model_validate_json(json.dumps(table, default=str), strict=True)
    except ValidationError as error:
        raise _wrong(error, place) from None
    return _with_paths(site, path.absolute().parent)


def billing_unit(folder: StudyFolder) -> Bill | None:
    """Return the unit in which the site of a study charges, from its current profile.

    Returns:
        The unit; None for a study without a queue, and if the profile cannot be read here. A relative path in
        launch.site refers to the folder that holds `studies/NAME`.
    """
    launch = folder.study.launch
    if launch.on in WITHOUT_SITE:
        return None
    try:
        return find_site(launch.site, folder.path.absolute().parent.parent).bill
    except UserError:
        return None


def _refuse_unknown(
    table: dict[str, Any],
    model: type[Any],
    prefix: str,
    place: KeyLines,
) -> None:
    owner = "a site profile"
    if prefix:
        owner = "[container]"
    for key in table:
        if key not in model.model_fields:
            close = suggestion(key, model.model_fields)
            action = f"Remove it; {_INIT}"
            if close:
                action = f"Did you mean `{close}`?"
            raise UserError(
                f"a known key of {owner}",
                f"`{key}`{place.of(prefix + key)}",
                # A key that an earlier version knew is answered by its successor.
                what_instead("site", prefix + key) or action,
            )


def _wrong(error: ValidationError, place: KeyLines) -> UserError:
    # One mistake at a time: the others may follow from it.
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"] if isinstance(part, str)]
    # Without a place, the mistake is in the combination of keys.
    key = ""
    received = "other values"
    if parts:
        key = parts[0]
        received = shown(first["input"])
    name = ".".join(parts[:2])
    if first["type"] == "missing":
        return UserError(
            f"{name} in a site profile",
            f"none{place.of(name, key)}",
            f"Add it; {_INIT}",
        )
    kinds = {"tuple_type": "a list of strings", "dict_type": "a table of strings"}
    expected = (
        first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    )
    return UserError(
        f"{kinds.get(first['type'], expected)} for {name or 'the site profile'}",
        f"{received}{place.of(key)}",
        f"Correct the value; {_INIT}",
    )


def _with_paths(site: Site, base: Path) -> Site:
    """Replace `~` in paths, and variables in paths that are used on the submitting machine.

    Other variables are left to the shells of the nodes, for which a plain $ is written as $$.
    """
    changes: dict[str, Any] = {}
    if site.environment:
        changes["environment"] = _absolute_path(site.environment, base)
    if site.scratch:
        changes["scratch"] = os.path.expanduser(site.scratch)
    if site.container:
        binds = []
        for bind in site.container.binds:
            # "SOURCE:DESTINATION:OPTIONS", as apptainer reads it.
            binds.append(":".join(map(os.path.expanduser, bind.split(":"))))
        container = {
            "image": _absolute_path(site.container.image, base),
            "binds": tuple(binds),
        }
        changes["container"] = site.container.model_copy(update=container)
    return site.model_copy(update=changes)


def _absolute_path(text: str, base: Path) -> str:
    try:
        return os.path.abspath(base / expand_variables(text)).replace("$", "$$")
    except UndefinedVariable:
        return os.path.expanduser(text)  # the variable is known only on the nodes
