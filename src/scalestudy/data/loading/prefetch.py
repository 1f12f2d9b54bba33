"""A thread that makes things before they are needed: so many, and no more."""

import queue
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetch(Generic[T]):
    """Goes over `items` in a thread of its own, at most `most` of them before they are taken.

    Whoever made it must `close` it.
    """

    def __init__(self, items: Iterator[T], most: int, name: str) -> None:
        self._items = items
        self._slots = threading.Semaphore(most)
        self._ready: queue.SimpleQueue[tuple[T] | BaseException] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def take(self) -> T:
        """The next one, waited for.

        Raises:
            StopIteration: There are no more.
            BaseException: What making it raised.
        """
        item = self._ready.get()
        if isinstance(item, BaseException):
            raise item
        self._slots.release()
        return item[0]

    def close(self) -> None:
        """End the thread, once it has made what it is at."""
        self._closed = True
        self._slots.release()
        self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                self._slots.acquire()
                if self._closed:
                    return
                self._ready.put((next(self._items),))
        except BaseException as error:  # the end, too: told to whoever takes
            self._ready.put(error)
