"""Parallel decoding keeps the order, reads a few items ahead, and stops at the first error."""

import signal
import subprocess
import sys

from scalestudy.data.sources.base import digest, side_by_side


def test_only_a_few_items_are_taken_ahead():
    taken = []
    results = side_by_side(lambda item: item, (taken.append(item) or item for item in range(1000)))
    assert next(results) == 0
    assert len(taken) < 20
    results.close()


def test_digests_tell_parts_apart():
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("ab", "c", None)}) == 4


def test_an_interrupt_waits_for_no_image_under_way():
    program = (
        "import signal, time\nfrom threading import Timer, main_thread\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from scalestudy.data.sources.base import side_by_side\n"
        "results = side_by_side(lambda item: time.sleep(600), range(9))\n"
        "Timer(0.1, signal.pthread_kill, [main_thread().ident, signal.SIGINT]).start()\n"
        "list(results)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=300, check=False)
    assert ended.returncode == -signal.SIGINT
