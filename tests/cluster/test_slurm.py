import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.cluster.resolve import slurm
from scalestudy.util.errors import UserError


def short(counts: list[int]) -> str:
    return ",".join(map(str, counts))


def task(
    rank: int, counts: list[int], node: int, local: int, **changes: str
) -> dict[str, str]:
    values = {
        "SLURM_JOB_ID": "1234",
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": str(rank),
        "SLURM_STEP_NUM_TASKS": str(sum(counts)),
        "SLURM_LOCALID": str(local),
        "SLURM_NODEID": str(node),
        "SLURM_STEP_NODELIST": f"n[1-{len(counts)}]",
        "SLURM_STEP_TASKS_PER_NODE": short(counts),
        "SLURM_DISTRIBUTION": "block",
    }
    return values | changes


counts = st.lists(st.integers(1, 9), min_size=1, max_size=20)


@given(
    counts.flatmap(lambda each: st.tuples(st.just(each), st.integers(0, sum(each) - 1)))
)
def test_blocks_fill_one_node_after_another(step):
    each, rank = step
    node = next(index for index in range(len(each)) if rank < sum(each[: index + 1]))
    local = rank - sum(each[:node])
    place = slurm(task(rank, each, node, local))
    assert place.hosts == tuple(
        f"n{index + 1}" for index, count in enumerate(each) for _ in range(count)
    )
    assert (place.rank, place.size, place.local_rank) == (rank, sum(each), local)
    assert (place.local_size, place.node_rank) == (each[node], node)
    assert place.hosts.count(place.hosts[rank]) == place.local_size


@given(st.integers(1, 2**31))
def test_ports_follow_from_the_job_and_stay_below_those_that_linux_hands_out(job):
    place = slurm(task(0, [1], 0, 0, SLURM_JOB_ID=str(job)))
    assert place.port == 20000 + job % 187 * 64
    assert place.port + 63 < 32000


def test_what_is_no_step_has_no_placement_and_other_variables_may_tell_its_size_and_order():
    assert slurm({}) is None
    without = task(1, [2], 0, 1, SLURM_NTASKS="2")
    del without["SLURM_STEP_NUM_TASKS"]
    assert slurm(without).size == 2
    one_a_node = task(1, [1, 1], 1, 0, SLURM_DISTRIBUTION="arbitrary")
    assert slurm(one_a_node).hosts == ("n1", "n2")


STEP = task(1, [2], 0, 1)
PLACE = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID")
NEEDED = (*PLACE, "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE")
ADDS_UP = "number of tasks in the Slurm step"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        *(
            ({key: value for key, value in STEP.items() if key != name}, name)
            for name in NEEDED
        ),
        (task(1, [2], 0, 1, SLURM_STEP_NUM_TASKS="3"), ADDS_UP),
        (task(1, [2], 0, 1, SLURM_STEP_NODELIST="n1,n2"), ADDS_UP),
        (task(1, [2], 0, 1, SLURM_STEP_TASKS_PER_NODE="1"), ADDS_UP),
        (task(1, [2], 0, 1, SLURM_PROCID="2"), ADDS_UP),
        (task(1, [2, 2], 1, 0), "SLURM_LOCALID=0 and SLURM_NODEID=1"),
        (task(1, [2, 2], 0, 1, SLURM_DISTRIBUTION="plane=2"), "SLURM_DISTRIBUTION"),
        (
            task(1, [2, 2], 1, 0, SLURM_DISTRIBUTION="cyclic:cyclic,Pack"),
            "SLURM_DISTRIBUTION",
        ),
    ],
)
def test_a_step_that_does_not_add_up_is_refused(environment, message):
    with pytest.raises(UserError, match=message):
        slurm(environment)
