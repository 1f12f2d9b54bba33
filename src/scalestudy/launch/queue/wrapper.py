"""Run a job: `python -m scalestudy.launch.queue.wrapper QUEUE WARN_AFTER REQUEUES RUN COMMAND…`.

It runs on the first node, outside of any container, and replaces the job's shell. It claims the run folder
for its job, runs the command that starts all ranks, passes on the queue's request to stop at a checkpoint,
ends hanging ranks, requeues the job, and writes the exit code of the ranks to `exit`.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, cast

from scalestudy.cluster.private_files import SECRET_FILE, forget_addresses
from scalestudy.launch.job_failures import STOPPED_EXIT_CODE
from scalestudy.launch.launcher import launcher
from scalestudy.launch.queue.batch_queue import Queue
from scalestudy.measure.hang_detection import HangDetector
from scalestudy.store.records import Allocation
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import RunError, ScalestudyError
from scalestudy.util.files import write_atomically

if TYPE_CHECKING:
    from scalestudy.launch.queue.queue_launcher import QueueLauncher

POLL = 0.2
HANG_EVERY = 10.0
"""Seconds between two checks of the heartbeats of all ranks, on a file system that all nodes share."""
GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL when ranks hang."""


def main(arguments: list[str]) -> int:
    """Run the ranks of a job and return the job's exit code."""
    name, warn_after, requeues, folder, *command = arguments
    queue = cast("QueueLauncher", launcher(name)).queue
    wrapper = Wrapper(queue, Path(folder), int(requeues))
    return wrapper.work(command, int(warn_after))


class Wrapper:
    """Runs the ranks of a job and judges how they ended.

    Args:
        queue: Queue of the job.
        folder: Folder of the run.
        requeues: How often the job may queue itself again, each time for one more time limit; 0 for never,
            not even after a preemption.
    """

    def __init__(
        self,
        queue: Queue,
        folder: Path,
        requeues: int,
    ) -> None:
        self._queue, self._folder = queue, folder
        self._most = 0
        if queue.requeues:
            self._most = requeues
        self._submission = os.environ.get("SCALESTUDY_SUBMISSION", "")
        self._run = RunFolder(folder, self._submission)
        self._own = f"{self._submission} {queue.own_job()}\n"
        self._terminated = False

    def work(self, command: Sequence[str], warn_after: int) -> int:
        """Run the ranks until they end and return the exit code of the job.

        Args:
            command: Command that starts all ranks.
            warn_after: Seconds after which to ask the run to stop; 0 if the queue does that.
        """
        job = self._queue.own_job()
        # First of all: from here on, the queue's signals would end this process by default.
        signal.signal(signal.SIGUSR1, self._stop)
        signal.signal(signal.SIGTERM, self._stop)
        if self._submission and not self._claim():
            _say(
                f"job {job} leaves: this folder belongs to another job; see job.json and began"
            )
            return 1
        self._clear()
        _say(f"job {job} on {socket.gethostname()} of {self._queue.own_nodes()}")
        allocation = None
        if self._submission:
            allocation = self._queue.own_allocation()
        self._record(allocation)
        code = self._watch(command, warn_after)
        # The study may have been submitted again meanwhile, or a requeued job have been started twice.
        if self._submission and not self._is_ours():
            _say(f"ended with exit code {code}; the folder has become another job's")
            return 1
        if allocation:
            # The queue's clock may be ahead of this node's.
            self._record(
                allocation.model_copy(
                    update={"ended": max(time.time(), allocation.began)}
                )
            )
        final = self._judge(code)
        if final is None:
            return 0
        if (self._folder / "result.json").exists():
            self._run.forget_signs()
        _say(f"ended with exit code {final}")
        write_atomically(self._folder / "exit", f"{final}\n", durable=False)
        return final

    def _record(self, allocation: Allocation | None) -> None:
        """Record what the job holds, for its costs. A full disk does not end a run for this."""
        if allocation is not None:
            with contextlib.suppress(OSError, RunError):
                self._run.write_allocation(allocation)

    def _claim(self) -> bool:
        """Claim the run for this job; return whether it belongs to the job.

        It belongs to the first job that began of the submission in job.json, and once that job has ended
        (`exit`), to the next.
        """
        with contextlib.suppress(RunError):
            self._run.refuse_other_job()
            began = self._folder / "began"
            try:
                # "x" creates the file for one job only, on NFS too (version 3 and later).
                with open(began, "x") as file:
                    file.write(self._own)
            except FileExistsError:
                if not self._is_ours() and (self._folder / "exit").exists():
                    write_atomically(began, self._own, durable=False)
        return self._is_ours()

    def _is_ours(self) -> bool:
        try:
            self._run.refuse_other_job()
            return (self._folder / "began").read_text() == self._own
        except (RunError, OSError, UnicodeDecodeError):
            return False

    def _clear(self) -> None:
        for name in ("exit", SECRET_FILE):
            (self._folder / name).unlink(missing_ok=True)
        self._run.forget_stop()
        forget_addresses(self._folder)
        for name in ("causes", "signs"):
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Ask the run to stop, before the time limit (USR1) or because the queue ends the job (TERM)."""
        self._terminated |= number == signal.SIGTERM
        words = "asked to stop"
        if number == signal.SIGTERM:
            words += " (SIGTERM)"
        print(words, flush=True)
        with contextlib.suppress(OSError, RunError):
            self._run.ask_to_stop()

    def _watch(self, command: Sequence[str], warn_after: int) -> int:
        """Start the ranks and wait for their end; return their exit code as a shell encodes it."""
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", flush=True)
            # As a shell ends that does not find a command.
            return 127
        warn_at = float("inf")
        if warn_after:
            warn_at = time.monotonic() + warn_after
        detector = self._hang_detector()
        # Polled: a blocking wait would be resumed after a signal, and could not watch for hangs.
        while process.poll() is None:
            time.sleep(POLL)
            if time.monotonic() >= warn_at:
                warn_at = float("inf")
                self._stop(signal.SIGUSR1, None)
            if detector and (hang := detector.check(time.monotonic())):
                print(
                    f"no rank has reported progress for {hang.seconds:.0f} s",
                    flush=True,
                )
                with contextlib.suppress(OSError, RunError):
                    self._run.write_hang(hang)
                _end(process)
        if process.returncode < 0:
            return 128 - process.returncode
        return process.returncode

    def _hang_detector(self) -> HangDetector | None:
        """Return a detector of hanging ranks; None for a job of `check`, which has no point."""
        if not (self._folder / "point.json").exists():
            return None
        try:
            point = self._run.point()
        except ScalestudyError:  # the ranks will report it
            return None
        return HangDetector(
            self._run,
            point.processes,
            point.launch.progress_timeout,
            every=HANG_EVERY,
        )

    def _judge(self, code: int) -> int | None:
        """Return the job's final exit code; None if the job was requeued."""
        done = (self._folder / "result.json").exists()
        if self._terminated and not done:
            # A cancelled job must not come back; a preempted one is started again by the queue.
            if not self._queue.is_running():
                self._run.forget_stop()
                # As the signal would have ended this process without a handler.
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGTERM)
            if self._run.stopped():
                code = 0  # the launcher may report the signal as a failure
        if code != 0 or done or not (self._folder / "point.json").exists():
            return code
        stopped = self._run.stopped()
        if stopped is None:
            return 1
        self._run.forget_stop()
        words = f"stopped at a checkpoint in epoch {stopped.epoch} after step {stopped.step}"
        if self._put_back(words):
            return None
        return STOPPED_EXIT_CODE

    def _put_back(self, words: str) -> bool:
        """Requeue the job, if possible and not done too often; return whether that succeeded.

        A preemption does not count towards the limit.
        """
        if self._terminated and self._most and self._queue.requeue():
            _say(f"{words}; queued again")
            return True
        count = self._run.requeues().partition(" ")[0]
        number = 1
        if count.isdigit():
            number = int(count) + 1
        if number <= self._most:
            # Before the queue is asked, which may end this process while it answers.
            write_atomically(
                self._folder / "requeues",
                f"{number} of {self._most}\n",
                durable=False,
            )
            _say(f"{words}; queued again ({number} of {self._most})")
            if self._queue.requeue():
                return True
        _say(f"{words}; submit the study again to continue from it")
        return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()


def _say(text: str) -> None:
    print(f"{time.strftime('%FT%TZ', time.gmtime())} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
