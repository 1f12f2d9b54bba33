"""What each GPU of a run did, as CSCS's own report of a job has it."""

from scalestudy.features.proposal.remedy import Remedy
from scalestudy.features.proposal.subject import Subject
from scalestudy.features.proposal.words import Missing, figure
from scalestudy.report.document import Heading, Table


def gpu_table(subject: Subject) -> Table | Missing:
    """A row for each GPU of the first run on the workers that are asked for."""
    run = subject.runs(subject.row)[0]
    if not run.result.gpus:
        return Missing("no GPU was recorded", Remedy("Run the study on GPUs whose driver tells it (NVML)."))
    hosts = {rank.rank: rank.host for rank in run.ranks}
    headings = (
        Heading("Host", numeric=False), Heading("Rank"), Heading("GPU"), Heading("SM use", "%"),
        Heading("Memory use", "%"), Heading("Peak memory", "GiB"), Heading("Power", "W"),
        Heading("Energy", "Wh"),
    )  # fmt: skip
    rows = tuple(
        (
            hosts.get(use.rank, ""), str(use.rank), str(use.device), _told(use.percent, 3),
            _told(use.memory_percent, 3), _told(use.allocated_bytes, 3, 2**30),
            _told(use.watts, 3), _told(use.joules, 3, 3600),
        )
        for use in run.result.gpus
    )  # fmt: skip
    return Table(headings, rows, f"Each GPU of {run.result.name}, over its training time.", name="gpus")


def _told(value: float | None, digits: int, unit: float = 1.0) -> str:
    return "" if value is None else figure(value / unit, digits)
