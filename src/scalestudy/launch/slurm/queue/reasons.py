"""Slurm's reasons for letting a job wait, in words."""

import re

WORDS = {
    "Priority": "others are before it",
    "Resources": "waits for free nodes",
    "Dependency": "waits for another job",
    "DependencyNeverSatisfied": "what it waits for has failed",
    "JobArrayTaskLimit": "waits for others of its array",
    "BeginTime": "starts again shortly",
    "JobHeldUser": "held by its user",
    "JobHeldAdmin": "held by an administrator",
    "JobLaunchFailure": "could not be started",
    "ReqNodeNotAvail": "its nodes are down, drained or reserved",
    "NodeDown": "its nodes are down",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition is inactive",
    "PartitionNodeLimit": "more nodes than the partition grants",
    "PartitionTimeLimit": "more time than the partition grants",
    "PartitionConfig": "the partition does not take it",
    "Reservation": "waits for a reservation",
    "Licenses": "waits for a licence",
    "Cleaning": "being cleaned up",
    "Prolog": "the nodes are being prepared",
    "InvalidAccount": "its account is invalid",
    "InvalidQOS": "its QoS is invalid",
    "AccountNotAllowed": "the partition does not take its account",
    "QOSNotAllowed": "its QoS is not allowed",
    "BadConstraints": "no node can satisfy it",
}


def in_words(reason: str) -> str:
    """The reason of a pending job, in words where there are any: "Resources" -> "waits for free nodes".

    Limits (QOSMaxJobsPerUserLimit, AssocGrpGRES, …) are named as Slurm names them.
    """
    word = re.split(r"[,( ]", reason.strip(" ()"), maxsplit=1)[0]
    if word in WORDS:
        return WORDS[word]
    if word.startswith(("QOS", "Assoc", "MaxGRES", "User", "Account")) or "Limit" in word:
        return f"a limit is reached ({word})"
    return reason or "not yet considered"
