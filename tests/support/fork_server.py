"""`python -m fork_server DESCRIPTOR ENGINE …`: a process that has imported an engine, and forks on request.

It never computes, so that it has no state but modules and no threads that a fork would lose. Whoever asks is
made the parent of what was forked, as if it had started a Python itself: see `forking.py`.
"""

import contextlib
import importlib
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence

import forking
from become_python import become
from python_start import LENGTH, PythonStart, receive

MODULES = {
    "": (
        "scalestudy.cli",
        "scalestudy.app",
        "scalestudy.report.study_document",
        "scalestudy.training.rank_run",
        "scipy.stats",
    ),
    "tensorflow": (
        "tensorflow",
        "keras",
        "scalestudy.cli",
        "scalestudy.engines.tensorflow.distribute",
        "scalestudy.engines.tensorflow.horovod",
        "scalestudy.engines.tensorflow.engine",
        "scalestudy.engines.tensorflow.trainer",
        "scalestudy.tasks.trial",
        "scalestudy.training.rank_run",
    ),
    "torch": (
        "torch",
        "keras",
        "scalestudy.cli",
        "scalestudy.engines.torch.engine",
        "scalestudy.engines.torch.group",
        "scalestudy.tasks.trial",
        "scalestudy.training.rank_run",
    ),
}
"""What is imported for each engine; "" needs none."""


def import_engine(engine: str) -> None:
    """Import an engine in the environment that workers set before they import it."""
    if not engine:
        for name in MODULES[engine]:
            importlib.import_module(name)
        return
    from scalestudy.plugins.engines import engine_traits
    from scalestudy.util.unused_packages import without_unused

    traits = engine_traits(engine)
    wanted = traits.environment(os.environ, gpus=False)
    os.environ.update(
        {name: value for name, value in wanted.items() if value is not None}
    )
    with without_unused(traits.unused):
        for name in MODULES[engine]:
            importlib.import_module(name)


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
