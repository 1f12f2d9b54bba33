import threading

import pytest

from scalestudy.data.loading.prefetch import Prefetch


def test_it_makes_so_many_ahead_and_no_more():
    made, at_least = [], threading.Semaphore(0)

    def items():
        for number in range(10):
            made.append(number)
            at_least.release()
            yield number

    def wait_for(count):
        for _ in range(count):
            assert at_least.acquire(timeout=60)

    ahead = Prefetch(items(), 2, "test")
    wait_for(2)
    for number in range(8):
        assert ahead.take() == number
        wait_for(1)
        assert made == list(range(number + 3))  # exactly this many: there is no buffer for the next
    ahead.close()
    assert made == list(range(10))


def test_all_come_in_order_and_then_the_end():
    ahead = Prefetch(iter(range(100)), 3, "test")
    assert [ahead.take() for _ in range(100)] == list(range(100))
    with pytest.raises(StopIteration):
        ahead.take()
    ahead.close()


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_closing_ends_the_thread_wherever_it_waits(taken):
    ahead = Prefetch(iter(range(3)), 1, "to be closed")
    for _ in range(taken):
        ahead.take()
    ahead.close()
    assert "to be closed" not in {thread.name for thread in threading.enumerate()}
