"""Jobs that wait: why, in Slurm's own words, and what a user is told to do."""

import pytest

from cluster_study import ClusterStudy

POINT = "native-w1-s0"


@pytest.fixture
def study(cluster, request):
    """A study of one point, whose jobs are cancelled at the end."""
    cluster.scalestudy("data", "prepare", "digits", "--cache", cluster.root / "cache")
    made = ClusterStudy(cluster, request.node.name[:30])
    made.study(seed=(0,))
    yield made
    made.code("cancel")


def told(study: ClusterStudy, words: str) -> str:
    """Wait until `status` shows these words."""

    def shown() -> str:
        text = " ".join(study("status").split())
        return text if words in text else ""

    return study.cluster.wait_for(shown, words)


def test_a_held_job_needs_its_user_or_the_site_and_goes_on_once_it_is_released(study):
    study.site(account="research", directives=["--hold"])
    assert "Submitted" in study("submit")
    job = study.job(POINT)
    study.cluster.run("scontrol", "uhold", job)
    assert f"Next: scontrol release {job}" in told(
        study, "needs you: held by you (JobHeldUser)"
    )
    assert "needs you: held by you" in study("submit")
    study.cluster.run("scontrol", "hold", job)  # by root, the administrator
    told(study, "needs the site: held by an administrator")
    study.cluster.run("scontrol", "release", job)
    study.cluster.wait_for(
        lambda: study.states() == {POINT: "done"}, "the released job"
    )


def test_jobs_start_after_another_and_are_never_put_back_where_that_is_forbidden(study):
    study.site(account="research", directives=["--no-requeue"])
    first = study.cluster.sbatch(
        "--hold", "--time=2", "--account=research", script="true"
    )
    study("submit", "--after", first)
    job = study.cluster.run("scontrol", "show", "job", study.job(POINT)).stdout
    assert f"Dependency=afterok:{first}" in job and "Requeue=0" in job
    told(study, "waits for another job")
    study.cluster.run("scontrol", "release", first)
    study.cluster.wait_for(
        lambda: study.states() == {POINT: "done"}, "the job after it"
    )


def test_an_account_without_hours_is_told_by_check_and_status(study):
    """`sacctmgr` gives the account no minutes, so that its jobs are accepted and never start."""
    limit = ("sacctmgr", "-i", "modify", "account", "research", "set")
    study.cluster.run(*limit, "GrpTRESMins=cpu=0")
    try:
        study("submit")
        told(study, "needs you: the account or QoS has no hours left")
        done = study.cluster.scalestudy(
            "check",
            study.path / "here.toml",
            "--skip",
            "versions",
            "--submit",
            check=False,
        )
        assert done.returncode == 1 and "no hours left" in done.stdout, done.stdout
    finally:
        study.cluster.run(*limit, "GrpTRESMins=cpu=-1")
