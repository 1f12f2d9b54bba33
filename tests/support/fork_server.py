"""`python -m fork_server DESCRIPTOR ENGINE …`: a process that has imported an engine, and forks on request.

It never computes, so that it has no state but modules and no threads that a fork would lose. Whoever asks is
made the parent of what was forked, as if it had started a Python itself: see `forking.py`.
"""

import contextlib
import importlib
import os
import pkgutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence

import forking
import scalestudy
from become_python import become
from python_start import LENGTH, PythonStart, receive
from scalestudy.plugins.engines import engine_traits
from scalestudy.util.unused_packages import without_unused

LIBRARIES = {
    "": (),
    "tensorflow": ("tensorflow", "keras"),
    "torch": ("torch", "keras"),
}
"""Libraries of each engine; "" needs none."""
IMPORTED_LATE = (
    "PIL.Image",
    "jinja2",
    "rich.progress",
    "scipy.optimize",
    "scipy.stats",
)
"""Libraries that commands import where they need them."""
OPTIONAL = "horovod"
"""A library without which the others are imported: it may not be built."""
ANY = ("tensorflow", "torch")
NEEDS = {
    "scalestudy.engines.keras": ANY,
    "scalestudy.engines.tensorflow": ("tensorflow",),
    "scalestudy.engines.torch": ("torch",),
    "scalestudy.losses": ANY,
    "scalestudy.metrics": ANY,
    "scalestudy.tasks": ANY,
    "scalestudy.tasks.module": ("torch",),
    "scalestudy.tasks.torch_cnn": ("torch",),
    "scalestudy.tasks.torch_unet": ("torch",),
}
"""Engines that may be imported for this project's packages and modules; all others need none."""


def import_engine(engine: str) -> None:
    """Import an engine in the environment that workers set before they import it, and this project's modules."""
    unused: Sequence[str] = ()
    if engine:
        traits = engine_traits(engine)
        wanted = traits.environment(os.environ, gpus=False)
        os.environ.update(
            {name: value for name, value in wanted.items() if value is not None}
        )
        unused = traits.unused
    with without_unused(unused):
        for name in (*LIBRARIES[engine], *modules_for(engine), *IMPORTED_LATE):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as missing:
                if (missing.name or "").partition(".")[0] != OPTIONAL:
                    raise


def modules_for(engine: str) -> Iterator[str]:
    """Names of this project's modules that import no other engine, without those that processes run."""
    for found in pkgutil.walk_packages(scalestudy.__path__, "scalestudy."):
        needed = [
            engines
            for name, engines in NEEDS.items()
            if f"{found.name}.".startswith(f"{name}.")
        ]
        run = found.name in forking.MODULES or found.name.endswith("__main__")
        if not run and all(engine in engines for engines in needed):
            yield found.name


def fork(start: PythonStart, streams: Sequence[int], caller: int) -> int:
    """Fork a child of `caller`, which is this process's parent and adopts orphans; return its id."""
    readable, writable = os.pipe()
    middle = os.fork()
    if middle == 0:
        child = os.fork()
        if child == 0:
            while os.getppid() != caller:
                time.sleep(0.0002)
            forking.fork_here()
            become(start, streams, forking.installed())
        os.write(writable, str(child).encode())
        os._exit(0)
    os.close(writable)
    os.waitpid(middle, 0)
    with os.fdopen(readable) as answer:
        return int(answer.read())


def main(descriptor: str, engine: str, *_: str) -> None:
    """Fork on request, until the other end is closed."""
    channel, caller = socket.socket(fileno=int(descriptor)), os.getppid()
    for number in (
        signal.SIGINT,
        signal.SIGHUP,
    ):  # of a terminal; the caller ends this process
        signal.signal(number, lambda *_: None)
    forking.keep_environment(engine)
    import_engine(engine)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while (received := receive(channel)) is not None:
            start, streams = received
            channel.sendall(LENGTH.pack(fork(start, streams, caller)))
            for stream in streams:
                os.close(stream)


if __name__ == "__main__":
    main(*sys.argv[1:])
