"""Fork the Pythons that tests start from a process that has imported the same, where nothing else changes.

Tests, and the processes that they start, call `subprocess` as ever. A command that runs one of `MODULES` or
`FILES` in this Python becomes a fork: of a fork server (`fork_server.py`) if the tests' process asks, which
may have computed; of the asking process if that is such a fork itself, and has not computed. It is a child of
the asking process, so that waiting, signals, sessions and the end with its parent work as usual.

All else starts a new Python: other commands, other interpreters, variables that are read at import and
differ, a PYTHONPATH with modules of its own, what is started in tests marked `new_python`, and everything
with the option --new-pythons.
"""

import contextlib
import ctypes
import functools
import inspect
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from become_python import TITLE, become
from paths import SOURCE, SUPPORT
from python_start import LENGTH, PythonStart, send

MODULES = (
    "ipykernel_launcher",
    "scalestudy",
    "scalestudy.worker",
    "scalestudy.engines.tensorflow.trial",
    "scalestudy.engines.torch.trial",
    "scalestudy.features.model.model_worker",
    "scalestudy.features.launch.script_process",
    "scalestudy.launch.host_agent",
    "scalestudy.tasks.child",
    "silent_worker",
    "stand_in",
    "supervised_call",
)
"""Modules that may be forked."""
FILES = (
    "linear.py",
    "stand_in.py",
    "steps.py",
    "tell_start.py",
    "torch_steps.py",
    "workers.py",
)
"""Files of this folder that may be forked."""
WITHOUT_ENGINE = (
    "silent_worker",
    "stand_in",
    "supervised_call",
    "linear.py",
    "stand_in.py",
    "tell_start.py",
    "workers.py",
)
TRAINING = ("run", "check", "data", "model", "submit", "init", "recipe", "launch")
"""Commands of the command line that start processes of an engine."""
ON_TORCH = re.compile(r'"engine": ?"torch"|"(?:ddp|torch-\w+)"')
ON_TENSORFLOW = re.compile(
    r'"engine": ?"tensorflow"|"(?:single|native|mirrored|multiworker|horovod|virtual)"'
)
"""What records and study files say of their engine."""
SCRIPTS = ("launch", "scalestudy.features.launch.script_process")
"""Commands and modules that run a script, whose imports tell its engine."""
IMPORTS_TORCH = re.compile(r"^\s*(?:import|from) torch\b", re.MULTILINE)
IMPORTS_TENSORFLOW = re.compile(
    r"^\s*(?:import|from) (?:tensorflow|keras|horovod)\b", re.MULTILINE
)
READ_AT_IMPORT = re.compile(
    r"(PYTHON(?!PATH$|UNBUFFERED$|DONTWRITEBYTECODE$)|KERAS_(?!BACKEND$)|CUDA_|HOME$|KMP_(?!DUPLICATE_|INIT_)|LANG|LC_|LD_|MALLOC_"
    r"|MKL_|NUMEXPR_|NVIDIA_|OMP_(?!NUM_THREADS$)|ONEDNN_|OPENBLAS_|PYTORCH_|TORCH_|TF_(?!CONFIG$|CPP_)|XLA_)"
)
"""Variables that are read when Python or a framework is imported. OMP_NUM_THREADS is applied again in a fork,
and TF_CPP_MIN_LOG_LEVEL only selects messages."""
NAMED = ("ZMQbg", "jemalloc", "polars", "tokio")
"""Names of threads by which a notebook's kernel talks, and reads tables."""
PYTHON = sys.executable
"""The Python of the tests. A test may give `sys.executable` another value, to see what is started in its place."""
GPU = Path("/dev/nvidia0")
"""The device file of the first GPU."""
SECRET = re.compile(r"token|secret|key|password|license", re.IGNORECASE)
"""Names of variables that no framework reads."""
ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""


class _State:
    """How this process forks."""

    is_fork = False
    disabled = 0
    engine = ""
    environment: Mapping[str, str] = MappingProxyType({})
    servers: ClassVar[dict[str, "_Server | None"]] = {}
    lock = threading.Lock()


class Popen(subprocess.Popen):
    """`subprocess.Popen`, which forks where it can."""

    def _execute_child(self, *given: Any) -> None:
        names = inspect.signature(super()._execute_child).bind(*given).arguments
        pid = None
        if (start := start_of(names)) is not None:
            streams = [names["p2cread"], names["c2pwrite"], names["errwrite"]]
            streams = [
                number if stream == -1 else stream
                for number, stream in enumerate(streams)
            ]
            pid = (
                _fork_here(start, streams)
                if _State.is_fork
                else _fork_elsewhere(start, streams)
            )
        if pid is None:
            super()._execute_child(*given)
            return
        self.pid, self._child_created = pid, True
        self._close_pipe_fds(*(names[name] for name in _PIPES))


_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


def start_of(call: Mapping[str, Any]) -> PythonStart | None:
    """What a call of `subprocess.Popen` starts; None if a fork could not do the same."""
    plain = not (
        call["shell"] or call["preexec_fn"] or call["pass_fds"] or call["executable"]
    )
    plain = plain and call["uid"] is None and call["gid"] is None and call["umask"] < 0
    if (
        _State.disabled
        or not plain
        or call["process_group"] != -1
        or isinstance(call["args"], str | bytes)
    ):
        return None
    words = [os.fspath(word) for word in call["args"]]
    if words[:1] != [PYTHON] or not all(isinstance(word, str) for word in words):
        return None
    safe, words = words[1:2] == ["-P"], words[2:] if words[1:2] == ["-P"] else words[1:]
    module, file = "", ""
    if words[:1] == ["-m"] and words[1:2] and words[1] in MODULES:
        module, arguments = words[1], words[2:]
    elif words and Path(words[0]).parent == SUPPORT and Path(words[0]).name in FILES:
        file, arguments = words[0], words[1:]
    else:
        return None
    folder = os.path.abspath(os.fspath(call["cwd"] or "."))
    environment = dict(os.environ if call["env"] is None else call["env"])
    if not os.path.isdir(folder) or not all(
        isinstance(value, str) for value in environment.values()
    ):
        return None
    return PythonStart(
        python=PYTHON,
        safe=safe,
        module=module,
        file=file,
        arguments=arguments,
        environment=environment,
        folder=folder,
        new_session=call["start_new_session"],
        cores=sorted(os.sched_getaffinity(0)),
    )


def engine_of(start: PythonStart) -> str:
    """The engine that a process needs; "" for none. A wrong answer costs time, and changes nothing."""
    program, arguments = start.module or Path(start.file).name, start.arguments
    if program in WITHOUT_ENGINE or (
        program == "scalestudy" and not {*arguments} & {*TRAINING}
    ):
        return ""
    if program == "torch_steps.py" or program.endswith("torch.trial"):
        return "torch"
    if {program, *arguments} & {*SCRIPTS}:
        return _engine_of_script(start)
    text = " ".join(arguments)
    for name in (*arguments, *(f"{name}/point.json" for name in arguments)):
        file = Path(start.folder, name[:200])
        with contextlib.suppress(OSError, UnicodeError):
            if file.suffix in (".json", ".toml") or program.endswith("model_worker"):
                text += file.read_text()
    on_torch, on_tensorflow = (
        len(ON_TORCH.findall(text)),
        len(ON_TENSORFLOW.findall(text)),
    )
    return "torch" if on_torch > on_tensorflow else "tensorflow"


def _engine_of_script(start: PythonStart) -> str:
    """The engine that a script imports; "" if it imports none, or is not found."""
    for name in start.arguments:
        file = Path(start.folder, name[:200])
        if file.suffix == ".py" and file.is_file():
            source = file.read_text(errors="replace")
            if IMPORTS_TENSORFLOW.search(source):
                return "tensorflow"
            return "torch" if IMPORTS_TORCH.search(source) else ""
    return ""


def differing(environment: Mapping[str, str]) -> set[str]:
    """Names of variables that are read at import and differ from those of the process to fork."""
    ours = _without_devices(_State.environment)
    environment = _without_devices(environment)
    names = {
        name
        for name in {*ours, *environment}
        if READ_AT_IMPORT.match(name) and not SECRET.search(name)
    }
    return {name for name in names if ours.get(name) != environment.get(name)}


def _without_devices(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without that of visible GPUs where there are none: it changes nothing then."""
    kept = dict(environment)
    if not GPU.exists():
        kept.pop("CUDA_VISIBLE_DEVICES", None)
    return kept


def _may_fork(start: PythonStart, engine: str) -> bool:
    backend = start.environment.get("KERAS_BACKEND", engine)
    return (
        not differing(start.environment)
        and backend in ("", engine)
        and not _brings_modules(start)
    )


def _brings_modules(start: PythonStart) -> bool:
    """Whether PYTHONPATH has modules that hide some of those that may be imported already."""
    brought = start.environment.get("PYTHONPATH", "").split(os.pathsep)
    folders = {Path(start.folder, entry).resolve() for entry in brought if entry} - {
        SOURCE,
        SUPPORT,
    }
    return not _modules_in(folders).isdisjoint(_installed_modules())


@functools.cache
def _installed_modules() -> set[str]:
    # A Python runs these as it starts, which no fork does.
    at_start = {"sitecustomize", "usercustomize"}
    return {"scalestudy", *at_start, *sys.stdlib_module_names} | _modules_in(
        map(Path, installed())
    )


def _modules_in(folders: Iterable[Path]) -> set[str]:
    """Names of what these folders hold, without their endings; compiled files are no modules."""
    names = {
        file.name.partition(".")[0]
        for folder in folders
        if folder.is_dir()
        for file in folder.iterdir()
    }
    return names - {"__pycache__"}


def _fork_here(start: PythonStart, streams: Sequence[int]) -> int | None:
    """Fork this process, if it has the engine and no threads of a framework: those start when it computes."""
    engine = engine_of(start)
    if _computes() or engine not in ("", _State.engine) or not _may_fork(start, engine):
        return None
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    child = os.fork()
    if child == 0:
        become(start, streams, installed())
    return child


def _computes() -> bool:
    """Whether a framework has started threads here, which a fork would lose.

    Those of TensorFlow are named. Those of OpenMP are not: where PyTorch is imported, no others may exist.
    """
    names = [file.read_text() for file in Path("/proc/self/task").glob("*/comm")]
    if _State.engine == "torch":
        return (
            sum(not name.startswith(NAMED) for name in names) > threading.active_count()
        )
    return any(name.startswith("tf_") for name in names)


def _fork_elsewhere(start: PythonStart, streams: Sequence[int]) -> int | None:
    """Let a fork server fork, which this process starts once."""
    engine = engine_of(start)
    if not _may_fork(start, engine):
        return None
    with _State.lock:
        if engine not in _State.servers:
            _State.servers[engine] = _Server(engine)
        server = _State.servers[engine]
        if server is None:
            return None
        try:
            return server.fork(start, streams)
        except (OSError, EOFError):  # it was ended, for example for lack of memory
            _State.servers[engine] = None
            return None


class _Server:
    """A fork server, as a child of this process."""

    def __init__(self, engine: str) -> None:
        self._channel, other = socket.socketpair()
        with other:
            os.set_inheritable(other.fileno(), True)
            self._process = _NEW(
                [
                    PYTHON,
                    "-m",
                    "fork_server",
                    str(other.fileno()),
                    engine,
                    "-" * TITLE,
                ],
                cwd="/",
                env={
                    **_State.environment,
                    "PYTHONPATH": os.pathsep.join([str(SOURCE), str(SUPPORT)]),
                },
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
            )

    def fork(self, start: PythonStart, streams: Sequence[int]) -> int:
        """Fork; the child is one of this process, which adopts orphans just as long."""
        libc = ctypes.CDLL(None)
        libc.prctl(ADOPT_ORPHANS, 1)
        try:
            send(self._channel, start, streams)
            answer = self._channel.recv(LENGTH.size, socket.MSG_WAITALL)
        finally:
            libc.prctl(ADOPT_ORPHANS, 0)
        if not answer:
            raise EOFError
        return int(LENGTH.unpack(answer)[0])


_NEW = subprocess.Popen


def install() -> None:
    """Fork from now on what this process starts by `subprocess`."""
    _State.environment = dict(os.environ)
    subprocess.Popen = Popen


def fork_here() -> None:
    """Fork from now on in this process, a fork itself."""
    _State.is_fork = True
    subprocess.Popen = Popen


def keep_environment(engine: str) -> None:
    """Keep the variables at the import of `engine` in this process, a fork server."""
    _State.engine, _State.environment = engine, dict(os.environ)


def installed() -> list[str]:
    """The end of `sys.path` that every Python of this environment has."""
    return [
        entry for entry in sys.path if entry not in ("", "/", str(SOURCE), str(SUPPORT))
    ]


@contextlib.contextmanager
def new_pythons() -> Iterator[None]:
    """Within the context, start every Python anew."""
    _State.disabled += 1
    try:
        yield
    finally:
        _State.disabled -= 1
