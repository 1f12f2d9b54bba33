"""Slurm's reasons of waiting jobs, in the groups that a user can act on."""

import time

import pytest

from scalestudy.app.selection import waiting_sentences
from scalestudy.launch.job_view import JobView
from scalestudy.launch.launcher import PointStatus
from scalestudy.launch.queue.slurm_reasons import explain_reason
from scalestudy.store.records import JobRecord
from scalestudy.store.study_folder import StudyFolder

WILL_START = """
    None Priority Resources BeginTime Dependency Licenses Reservation JobArrayTaskLimit Cleaning Prolog
    SchedDefer BurstBufferResources BurstBufferStageIn AssocGrpCpuLimit AssocGrpGRES AssocGrpNodeLimit
    AssocGrpJobsLimit AssocGrpCPURunMinutesLimit AssocGrpGRESRunMinutes AssocMaxJobsLimit AssociationJobLimit
    QOSGrpCpuLimit QOSGrpJobsLimit QOSMaxJobsPerUserLimit QOSMaxGRESPerUser QOSMaxCpuPerUserLimit
    MaxGRESPerAccount MaxJobsPerAccount QOSJobLimit ReqNodeNotAvail
"""
NEEDS_YOU = """
    JobHeldUser AssocGrpCPUMinutesLimit AssocGrpGRESMinutes AssocGrpBillingMinutes AssocGrpNodeMinutes
    AssocGrpWallLimit QOSGrpCPUMinutesLimit QOSGrpGRESMinutes QOSGrpWallLimit AssocMaxCpuPerJobLimit
    AssocMaxNodePerJobLimit AssocMaxGRESPerJob AssocMaxCPUMinutesPerJobLimit AssocMaxWallDurationPerJobLimit
    QOSMaxWallDurationPerJobLimit QOSMaxNodePerJobLimit QOSMaxGRESPerNode QOSMinGRES PartitionTimeLimit
    PartitionNodeLimit MaxMemPerLimit InvalidAccount InvalidQOS AccountNotAllowed QOSNotAllowed BadConstraints
    DependencyNeverSatisfied DeadLine ReservationDeleted JobHoldMaxRequeue QOSUsageThreshold
    launch_failed_requeued_held
"""
NEEDS_THE_SITE = (
    "JobHeldAdmin PartitionDown PartitionInactive NodeDown FrontEndDown SystemFailure"
)
GROUPS = {
    "will start": WILL_START,
    "needs you": NEEDS_YOU,
    "needs the site": NEEDS_THE_SITE,
}


@pytest.mark.parametrize(
    ("reason", "group"),
    [(word, group) for group, words in GROUPS.items() for word in words.split()],
)
def test_every_reason_has_its_group_and_a_next_command(reason, group):
    found = explain_reason(reason)
    assert found.group == group
    assert found.words and found.next_command(["7"])
    assert not found.stuck or reason.split("_")[0] in found.words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "waits for free nodes"),
        ("(Priority)", "others come first"),
        ("QOSMaxJobsPerUserLimit", "other jobs reach a limit (QOSMaxJobsPerUserLimit)"),
        (
            "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs",
            "its nodes are down, drained or reserved",
        ),
        ("", "not yet considered"),
    ],
)
def test_reasons_are_said_in_words_and_limits_by_their_names(reason, words) -> None:
    assert explain_reason(reason).words == words


def test_nodes_that_are_down_need_the_site_and_a_new_reason_is_no_guess():
    assert (
        explain_reason("ReqNodeNotAvail, UnavailableNodes:node1").group
        == "needs the site"
    )
    assert (
        explain_reason("SomethingNew").group,
        explain_reason("SomethingNew").words,
    ) == (
        "unknown",
        "SomethingNew",
    )


def test_points_that_wait_for_the_same_share_a_sentence_with_the_next_command(
    folder: StudyFolder,
):
    def waits(number: int, reason: str) -> PointStatus:
        job = JobRecord(
            job=str(number), submitted=time.time(), site="here", script="x.sh"
        )
        view = JobView(job=job.job, state="PENDING", reason=reason)
        point = folder.points()[number]
        return PointStatus(
            point, "queued", job=job, view=view, waiting=explain_reason(reason)
        )

    statuses = [waits(0, "Priority"), waits(1, "JobHeldUser"), waits(2, "JobHeldUser")]
    stuck, others = waiting_sentences(statuses)
    assert stuck.startswith(
        "2 points, native-w1-s1 first: needs you: held by you (JobHeldUser)"
    )
    assert stuck.endswith("scontrol release 1,2")
    assert others.startswith("native-w1-s0: will start: others come first")
    assert waiting_sentences(statuses, stuck_only=True) == [stuck]
