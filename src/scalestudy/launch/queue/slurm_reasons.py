"""What Slurm's reasons of waiting jobs mean: those of squeue(1), "JOB REASON CODES", in three groups."""

import re

from scalestudy.launch.waiting import Group, Waiting

ASSOCIATIONS = "sacctmgr show associations user=$USER"
RELEASE, CANCEL, SHOW = (
    "scontrol release {jobs}",
    "scancel {jobs}",
    "scontrol show job {jobs}",
)
_NEEDS_YOU = {
    "JobHeldUser": ("held by you", RELEASE),
    "(Assoc|QOS)Grp(?!.*RunMin).*(Minutes|Wall)": (
        "the account or QoS has no hours left: charge another (account, qos), or ask for more",
        "sshare -l -U",
    ),
    "QOSUsageThreshold": (
        "the QoS takes no job of an account that used so much: name another",
        ASSOCIATIONS,
    ),
    "AssocMax.*(PerJob|PerNode|WallDuration)|AssociationTimeLimit": (
        "no job of this size or length is allowed to the account: change time_limit or workers",
        ASSOCIATIONS,
    ),
    "QOS(Max.*(PerJob|PerNode|WallDuration)|Min|TimeLimit)": (
        "no job of this size or length is allowed in the QoS: change qos, time_limit or workers",
        "sacctmgr show qos",
    ),
    "Partition(Time|Node)Limit": (
        "no job of this length or size is allowed in the partition: change partition, time_limit or workers",
        "scontrol show partition",
    ),
    "MaxMemPerLimit": (
        "a node may not give so much memory: lower memory_per_node",
        "scontrol show partition",
    ),
    "Invalid(Account|QOS)|AccountNotAllowed|QOSNotAllowed|AccountingPolicy": (
        "the account or QoS is not allowed: correct account or qos, then submit again",
        ASSOCIATIONS,
    ),
    "BadConstraints": (
        "no node has what the job asks for: correct constraint",
        "sinfo -o '%P %D %f %G'",
    ),
    "DependencyNeverSatisfied": ("the job that it waits for has failed", CANCEL),
    "DeadLine|Deadline": ("it cannot end before its deadline", CANCEL),
    "ReservationDeleted": (
        "its reservation is gone: correct directives, then submit again",
        CANCEL,
    ),
    "JobHoldMaxRequeue|job requeued in held state": (
        "held after too many requeues",
        RELEASE,
    ),
    "JobLaunchFailure|launch failed requeued held": (
        "held, since its start has failed",
        SHOW,
    ),
    "user env retrieval failed requeued held": (
        "held, since your environment could not be read",
        RELEASE,
    ),
}
_NEEDS_THE_SITE = {
    "JobHeldAdmin": ("held by an administrator: ask your site why", SHOW),
    "PartitionDown|PartitionInactive": (
        "its partition takes no jobs at present",
        "sinfo -s",
    ),
    "NodeDown|FrontEndDown|SystemFailure": ("its nodes are down", "sinfo -R"),
    "ReqNodeNotAvail.*UnavailableNodes": (
        "its nodes are down, drained or reserved",
        "sinfo -R",
    ),
}
_WILL_START = {
    "": "not yet considered",
    "None": "not yet considered",
    "Priority": "others come first",
    "Resources": "waits for free nodes",
    "BeginTime": "starts at a set time, after a requeue shortly",
    "Dependency": "waits for another job",
    "Licenses": "waits for a licence",
    "Reservation": "waits for its reservation to begin",
    "ReqNodeNotAvail.*": "its nodes are in use or reserved",
    "Nodes required for job are DOWN, DRAINED or reserved.*": "its nodes are down, drained or reserved",
    "JobArrayTaskLimit": "waits for other jobs of its array",
    "Cleaning|Prolog|SchedDefer|FedJobLock|BurstBuffer.*": "Slurm prepares it",
    "MaxPoweredUpNodes": "waits until nodes may be powered up",
    # Limits on what runs at once, which end with other jobs.
    "(Assoc|QOS|Max).*|.*Limit": "other jobs reach a limit",
}


def explain_reason(reason: str) -> Waiting:
    """Explain why a job waits, from the reason that squeue shows."""
    text = reason.strip(" ()").replace("_", " ")
    word = re.split(r"[,( ]", text, maxsplit=1)[0]
    stuck: list[tuple[Group, dict[str, tuple[str, str]]]]
    stuck = [("needs you", _NEEDS_YOU), ("needs the site", _NEEDS_THE_SITE)]
    for group, meaning in stuck:
        for pattern, (words, command) in meaning.items():
            if re.match(pattern, text):
                return Waiting(group, f"{words} ({word})", command)
    for pattern, words in _WILL_START.items():
        if re.fullmatch(pattern, text):
            named = words
            if "limit" in words:
                # Which of the limits it is, only Slurm's own word tells.
                named += f" ({word})"
            return Waiting("will start", named, "squeue --start -j {jobs}")
    return Waiting("unknown", text, SHOW)
