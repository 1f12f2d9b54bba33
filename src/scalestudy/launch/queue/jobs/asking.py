"""Asking queues for somebody who only looks: seldom, without waiting, and without a trace in a folder."""

import threading
import time
from collections.abc import Iterable

from scalestudy.launch.queue.base import Queue, QueueAbsent, QueueRefused, QueueSilent
from scalestudy.launch.queue.jobs.polling import Answers, answered, unanswered

EVERY = 10.0
"""Least seconds between two questions."""
PATIENCE = 3.0
"""Seconds without an answer after which it is said that there is none."""


class Asking:
    """Keeps the last answer of each queue about one study, and asks anew in a thread that nobody waits for.

    Args:
        wait: Seconds to wait for the first answer of a queue, for who looks only once.
        every: Seconds between two questions.
    """

    def __init__(self, wait: float = 0.0, every: float = EVERY) -> None:
        self._wait, self._every = wait, every
        self._answers: dict[str, Answers] = {}
        self._asked: dict[str, float] = {}
        self._under_way: dict[str, threading.Thread] = {}

    def poll(self, queue: Queue, jobs: Iterable[str], *, now: float, cluster: str = "") -> Answers:
        """The queue's last answer about these jobs, with what is wrong if it is late.

        Args:
            queue: Who is asked.
            jobs: Ids.
            now: Unix time.
            cluster: Cluster that the jobs were given to.
        """
        wanted, name = list(dict.fromkeys(jobs)), queue.name
        if not wanted:
            return self._answers.get(name, Answers())
        thread = self._under_way.get(name)
        due = not 0 <= now - self._asked.get(name, -self._every) < self._every
        if due and (thread is None or not thread.is_alive()):
            self._asked[name] = now
            thread = threading.Thread(target=self._ask, args=(queue, wanted, cluster), daemon=True)
            self._under_way[name] = thread
            thread.start()
            thread.join(self._wait)
        late = now - self._asked.get(name, now)
        known = self._answers.get(name, Answers())
        if thread is not None and thread.is_alive() and max(late, self._wait) > PATIENCE:
            return known.model_copy(update={"error": f"no answer for {max(late, self._wait):.0f} s"})
        return known

    def _ask(self, queue: Queue, jobs: list[str], cluster: str) -> None:
        before = self._answers.get(queue.name, Answers())
        try:
            self._answers[queue.name] = answered(before, queue.ask(jobs, cluster=cluster), now=time.time())
        except (QueueSilent, QueueRefused, QueueAbsent) as error:
            reason = error.reason if isinstance(error, QueueSilent) else error.received
            self._answers[queue.name] = unanswered(before, reason, now=time.time())
