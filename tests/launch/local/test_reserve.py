import socket
import subprocess
import sys

import pytest

from scalestudy.launch.local import reserve


def test_two_runs_get_different_ports():
    with reserve.ports(3) as first, reserve.ports(3) as second:
        assert not set(range(first, first + 3)) & set(range(second, second + 3))


def test_a_port_that_somebody_listens_at_is_not_given():
    with reserve.ports(1) as taken:
        pass
    with socket.socket() as listener:
        listener.bind(("", taken))
        listener.listen()
        with reserve.ports(1) as other:
            assert other != taken


def test_ports_are_free_again_after_the_run():
    with reserve.ports(2) as first:
        pass
    with reserve.ports(2) as again:
        assert again == first


def test_a_reservation_holds_against_other_processes_and_ends_with_its_owner():
    program = (
        "from scalestudy.launch.local import reserve\n"
        "with reserve.cores([0, 1], 2) as (cores, alone):\n"
        "    print(alone, flush=True); input()"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline().strip() in ("True", "False")
        with reserve.cores([0, 1], 1) as (_, alone):
            assert not alone
        other.kill()
    with reserve.cores([1000, 1001], 1) as (cores, alone):
        assert (cores, alone) == ([1000], True)


@pytest.mark.parametrize(
    ("wanted", "cores"), [(1, [2000]), (2, [2000, 2001]), (5, [2000, 2001, 2000, 2001, 2000])]
)
def test_cores_are_handed_out_twice_only_when_there_are_too_few(wanted, cores):
    with reserve.cores([2000, 2001], wanted) as (given, alone):
        assert given == cores
        assert alone == (wanted <= 2)


def test_a_second_study_takes_the_cores_that_are_left():
    with reserve.cores([3000, 3001], 1) as (first, _), reserve.cores([3000, 3001], 1) as (second, alone):
        assert (first, second, alone) == ([3000], [3001], True)
