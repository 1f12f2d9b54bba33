import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.cluster.resolve import slurm
from scalestudy.util.errors import UserError


def short(counts: list[int]) -> str:
    return ",".join(map(str, counts))


def task(rank: int, counts: list[int], node: int, local: int, **changes: str) -> dict[str, str]:
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


@given(counts.flatmap(lambda each: st.tuples(st.just(each), st.integers(0, sum(each) - 1))))
def test_blocks_fill_one_node_after_another(step):
    each, rank = step
    node = next(index for index in range(len(each)) if rank < sum(each[: index + 1]))
    local = rank - sum(each[:node])
    place = slurm(task(rank, each, node, local))
    assert place.hosts == tuple(f"n{index + 1}" for index, count in enumerate(each) for _ in range(count))
    assert (place.rank, place.size, place.local_rank) == (rank, sum(each), local)
    assert (place.local_size, place.node_rank) == (each[node], node)
    assert place.hosts.count(place.hosts[rank]) == place.local_size


@given(counts.flatmap(lambda each: st.tuples(st.just(each), st.integers(0, sum(each) - 1))))
def test_a_cyclic_distribution_deals_to_nodes_in_turn(step):
    each, rank = step
    left, dealt = list(each), []
    while any(left):
        for node, count in enumerate(left):
            if count:
                dealt.append(node)
                left[node] -= 1
    local = dealt[:rank].count(dealt[rank])
    place = slurm(task(rank, each, dealt[rank], local, SLURM_DISTRIBUTION="cyclic:cyclic,Pack"))
    assert place.hosts == tuple(f"n{node + 1}" for node in dealt)


@given(st.integers(1, 2**31))
def test_ports_follow_from_the_job_and_stay_below_those_that_linux_hands_out(job):
    place = slurm(task(0, [1], 0, 0, SLURM_JOB_ID=str(job)))
    assert place.port == 20000 + job % 187 * 64
    assert place.port + 63 < 32000


def test_two_jobs_in_a_row_share_no_port():
    ports = [slurm(task(0, [1], 0, 0, SLURM_JOB_ID=str(job))).port for job in range(500, 500 + 187)]
    assert len(set(ports)) == 187


def test_outside_of_slurm_there_is_no_placement():
    assert slurm({}) is None


@pytest.mark.parametrize(
    "name",
    ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"],
)
def test_a_missing_variable_is_named(name):
    environment = task(1, [2], 0, 1)
    del environment[name]
    with pytest.raises(UserError, match=name):
        slurm(environment)


def test_without_the_steps_count_the_jobs_is_taken():
    environment = task(1, [2], 0, 1, SLURM_NTASKS="2")
    del environment["SLURM_STEP_NUM_TASKS"]
    assert slurm(environment).size == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"SLURM_STEP_NUM_TASKS": "3"},
        {"SLURM_STEP_NODELIST": "n1,n2"},
        {"SLURM_STEP_TASKS_PER_NODE": "1"},
        {"SLURM_PROCID": "2"},
    ],
)
def test_a_step_that_does_not_add_up_is_refused(changes):
    with pytest.raises(UserError, match="number of tasks in the Slurm step"):
        slurm(task(1, [2], 0, 1) | changes)


def test_a_task_elsewhere_than_its_distribution_puts_it_is_refused():
    with pytest.raises(UserError, match="SLURM_LOCALID=0 and SLURM_NODEID=1"):
        slurm(task(1, [2, 2], 1, 0))


@pytest.mark.parametrize("distribution", ["plane=2", "arbitrary"])
def test_a_distribution_that_hosts_do_not_follow_from_is_refused(distribution):
    with pytest.raises(UserError, match="SLURM_DISTRIBUTION"):
        slurm(task(1, [2, 2], 0, 1, SLURM_DISTRIBUTION=distribution))


def test_any_distribution_of_one_task_a_node_is_understood():
    place = slurm(task(1, [1, 1], 1, 0, SLURM_DISTRIBUTION="arbitrary"))
    assert place.hosts == ("n1", "n2")
