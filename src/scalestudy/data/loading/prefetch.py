"""A thread that produces a limited number of items in advance."""

import queue
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetch(Generic[T]):
    """Iterates over `items` in a thread, at most `most` items ahead of the consumer.

    The creator must call `close`.
    """

    def __init__(self, items: Iterator[T], most: int, name: str) -> None:
        self._items = items
        self._slots = threading.Semaphore(most)
        self._ready: queue.SimpleQueue[tuple[T] | BaseException] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def take(self) -> T:
        """Wait for the next item and return it.

        Raises:
            StopIteration: If there are no more items.
            BaseException: The error that `items` raised.
        """
        item = self._ready.get()
        if isinstance(item, BaseException):
            raise item
        self._slots.release()
        return item[0]

    def close(self) -> None:
        """Stop the thread after its current item, and wait for it."""
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
        except BaseException as error:  # including StopIteration; `take` raises it
            self._ready.put(error)
