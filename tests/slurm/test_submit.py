"""Submit, watch and cancel through a real Slurm; the workers are stand-ins of a few lines."""

import signal
import subprocess
import sys
import time

import pytest

from cluster_study import ClusterStudy
from scalestudy.store.study_folder import StudyFolder


@pytest.fixture(scope="module")
def prepared(cluster):
    """Prepare the data set of all studies here once."""
    cluster.scalestudy("data", "prepare", "digits", "--cache", cluster.root / "cache")
    return cluster


@pytest.fixture
def cluster_study(prepared, request):
    made = []

    def make(**more) -> ClusterStudy:
        made.append(ClusterStudy(prepared, request.node.name[:30], **more))
        return made[-1]

    yield make
    for each in made:
        if each.results.exists() and set(each.states().values()) & {
            "queued",
            "running",
        }:
            each.code("cancel")


def test_a_study_is_submitted_watched_and_reported_and_repeats_nothing(
    cluster_study,
) -> None:
    here = cluster_study()
    here.study(workers=(1, 2), seed=(0, 1, 2))
    text = here("submit")
    assert (
        text.count("Submitted native-w") == 6
        and "scalestudy status results --live" in text
    )
    assert "Nothing was submitted" in here("submit")
    text = here("status", "--live")
    assert "6 points: 6 done" in text
    assert "Nothing was submitted" in here("submit")
    assert "native" in here("report")
    assert not list(here.results.rglob("run-2"))


def test_run_submits_watches_and_reports(cluster_study) -> None:
    here = cluster_study()
    here.plan(native_w1_s1={"exit": 3})
    code, text = here.code("run", "--no-report")
    assert code == 1
    assert "native-w1-s0 done" in text
    assert (
        "native-w1-s1 failed: rank 0 ended with exit code 3" in text
        and "it was to fail" in text
    )
    here.plan()
    code, text = here.code("run")
    assert code == 0 and "native-w1-s1 done" in text
    assert (here.results / "report" / "report.html").exists()
    assert here.code("run", "--no-report")[0] == 0


def test_ctrl_c_leaves_the_jobs_and_says_how_to_watch_and_cancel(cluster_study) -> None:
    here = cluster_study()
    here.plan(all={"hold": True})
    command = [
        sys.executable,
        "-m",
        "scalestudy",
        "run",
        "study.toml",
        "--out",
        "results",
    ]
    with subprocess.Popen(
        command,
        cwd=here.path,
        env=here.cluster.env,
        text=True,
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            here.cluster.wait_for(
                lambda: list(here.results.rglob("progress.json")), "a start"
            )
            process.send_signal(signal.SIGINT)
            text, _ = process.communicate(timeout=300)
        finally:
            process.kill()
    assert process.returncode == 130
    assert (
        "scalestudy status results --live" in text
        and "scalestudy cancel results" in text
    )
    here.go()
    here.wait("done")


def test_one_at_a_time_jobs_run_in_the_order_of_the_study(cluster_study) -> None:
    here = cluster_study()
    here.study(workers=(1, 2), seed=(0, 1))
    here.plan(all={"seconds": 0.2})
    here("run", "--no-report", "--at-most", 1)
    ran = [line.split()[0] for line in (here.path / "spans").read_text().splitlines()]
    folder = StudyFolder.open(here.results)
    assert ran == [point.name for point in folder.order.arrange(folder.points())]
    assert [name[-1] for name in ran] == ["0", "0", "1", "1"]


def test_pending_jobs_say_why_and_running_ones_where_and_how_far(cluster_study) -> None:
    here = cluster_study()
    here.study(seed=range(6))
    here.site(account="research")
    here.plan(all={"hold": True})
    here("submit")
    reasons = ("waits for free nodes", "others come first")

    def all_is_said() -> bool:
        text = here("status")
        return (
            "running 2/4" in text
            and "on node" in text
            and any(reason in text for reason in reasons)
        )

    here.cluster.wait_for(all_is_said, "progress, a node and a reason in one table")
    here("cancel")


def test_what_is_cancelled_says_so_and_can_be_submitted_again(cluster_study) -> None:
    here = cluster_study()
    here.plan(all={"hold": True})
    here("submit")
    here.cluster.wait_for(lambda: "running" in here.states().values(), "a start")
    text = here("cancel", "--point", "native-w1-s1")
    assert "Cancelled native-w1-s1" in text and "native-w1-s0" not in text
    assert "Cancelled native-w1-s0" in here("cancel")
    here.wait("cancelled")
    assert "cancelled" in here(
        "status"
    )  # only accounting knows by whom, and it may be late
    assert "Nothing to cancel" in here("cancel")
    here.plan()
    here("submit")
    here.wait("done")
    assert len(list(here.results.rglob("run-2"))) == 2


def test_what_is_interrupted_goes_on_in_its_own_folder_up_to_the_limit(
    cluster_study,
) -> None:
    here = cluster_study()
    here.study(seed=(0,))
    here.plan(all={"hold": True, "checkpoint": True})
    for _ in range(2):
        here("submit", "--resubmit", 1)
        here.wait_for_work("native-w1-s0")
        here("cancel")
        here.wait("cancelled")
    text = here("submit", "--resubmit", 1)
    assert "native-w1-s0 has been submitted 2 times" in text and "--resubmit N" in text
    here.plan(all={"hold": True, "checkpoint": True, "resumed": {"seconds": 0}})
    here("submit", "--resubmit", 2)
    here.wait("done")
    assert [
        path.name for path in (here.results / "points" / "native-w1-s0").iterdir()
    ] == ["run-1"]
    run = StudyFolder.open(here.results).runs("native-w1-s0")[0]
    assert run.job().attempt == 3 and run.failure() is None


def test_a_job_that_meets_its_time_limit_says_so_and_goes_on(cluster_study) -> None:
    here = cluster_study()
    here.study(seed=(0,))
    here.plan(all={"hold": True, "checkpoint": True})
    here("submit")
    here.wait_for_work("native-w1-s0")
    here.cluster.run(
        "scontrol", "update", f"JobId={here.job('native-w1-s0')}", "EndTime=now+1"
    )
    here.wait("failed")
    text = here("status")
    assert "the time limit was reached in epoch 2 of 4" in text
    here.plan(all={"seconds": 0})
    here("submit")
    here.wait("done")
    assert not list(here.results.rglob("run-2"))


def test_a_job_whose_node_dies_is_put_back_into_the_queue_and_is_not_failed(
    cluster_study,
) -> None:
    here = cluster_study()
    here.study(seed=(0,))
    here.plan(all={"hold": True, "checkpoint": True})
    here("submit")
    here.wait_for_work("native-w1-s0")
    node = here.cluster.run(
        "squeue", "-h", "-j", here.job("native-w1-s0"), "-o", "%N"
    ).stdout.strip()
    here.plan(all={"seconds": 0})
    here.cluster.kill_node(node)
    try:
        seen = set()

        def done() -> bool:
            seen.add(here.states()["native-w1-s0"])
            return "done" in seen

        here.cluster.wait_for(done, "the second start")
    finally:
        here.cluster.start_node(node)
    assert seen <= {"running", "queued", "done"}


def assert_billed(cluster_study: ClusterStudy, point: str, cores: int) -> None:
    """Compare what a run's job recorded that it held with what Slurm's accounting charges for it."""

    def charged() -> str:
        columns = "State,AllocCPUS,NNodes,ElapsedRaw"
        return cluster_study.cluster.run(
            "sacct", "-n", "-X", "-P", "-o", columns, "-j", cluster_study.job(point)
        ).stdout

    cluster_study.cluster.wait_for(
        lambda: charged().startswith("COMPLETED"),
        "the end of the job in the accounting",
    )
    (held,) = StudyFolder.open(cluster_study.results).runs(point)[-1].allocations().jobs
    _, *numbers = charged().strip().split("|")
    allocated, nodes, seconds = map(int, numbers)
    assert (held.cores, held.nodes) == (allocated, nodes) == (cores, 1)
    assert 0 < held.ended - held.began <= seconds + 1  # Slurm counts whole seconds


def test_what_a_job_holds_is_what_slurm_charges_and_who_shares_its_nodes_is_known(
    cluster_study,
) -> None:
    shares = cluster_study()
    shares.site(account="research", exclusive=False, memory_per_node="4000M")
    shares.study(workers=(1, 4), seed=(0,))
    shares.plan(all={"seconds": 0})
    alone = cluster_study()
    alone.study(seed=(0,))
    alone.plan(all={"seconds": 0})
    for each in (shares, alone):
        each("submit")
    for each in (shares, alone):
        each.wait("done")
    assert "nodes shared: yes" in shares("logs", "--point", "native-w1-s0")
    assert "nodes shared: no" in shares(
        "logs", "--point", "native-w4-s0"
    )  # the job has all cores of the node
    assert "nodes shared: no" in alone("logs", "--point", "native-w1-s0")
    for each, point, cores in (
        (shares, "native-w1-s0", 1),
        (shares, "native-w4-s0", 4),
        (
            alone,
            "native-w1-s0",
            4,
        ),  # all cores of the node, of which the worker uses one
    ):
        assert_billed(each, point, cores)
    scripts = {
        path.stem: path.read_text() for path in (shares.results / "jobs").glob("*.sh")
    }
    assert (
        "--mem=1000M" in scripts["native-w1-s0"]
        and "--mem=4000M" in scripts["native-w4-s0"]
    )


def test_a_controller_that_does_not_answer_keeps_nobody_waiting(cluster_study) -> None:
    here = cluster_study()
    here.plan(all={"hold": True})
    here("submit")
    here.cluster.wait_for(lambda: set(here.states().values()) == {"running"}, "a start")
    here.cluster.stop_controller()
    words = "Slurm does not answer (none within 20 s); its last answer is"
    try:
        # Until then, its last answer counts as fresh.
        text = here.cluster.wait_for(
            lambda: told if words in (told := here("status")) else "",
            "a question without an answer",
        )
        began = time.monotonic()
        assert "2 running" in text
        for command in ("submit", "cancel"):
            code, text = here.code(command)
            assert code == 1 and "none within 20 s" in text
        assert time.monotonic() - began < 120
    finally:
        here.cluster.start_controller()
    here.go()
    here.wait("done")


def test_without_accounting_the_cause_is_known_as_long_as_slurm_remembers(
    big_cluster,
) -> None:
    big_cluster.scalestudy(
        "data", "prepare", "digits", "--cache", big_cluster.root / "cache"
    )
    here = ClusterStudy(big_cluster, "no-accounting", account=None)
    here.study(seed=(0, 1, 2))
    here.plan(native_w1_s1={"exit": 4}, native_w1_s2={"hold": True})
    here("submit")

    def one_left() -> bool:
        states = here.states()
        return (
            states["native-w1-s1"] == "failed" and states["native-w1-s2"] == "running"
        )

    here.cluster.wait_for(one_left, "one that has failed, and one at work")
    here("cancel")
    here.wait("done", "failed", "cancelled")
    text = here("status")
    assert "rank 0 ended with exit code 4" in text
    assert "cancelled" in text
