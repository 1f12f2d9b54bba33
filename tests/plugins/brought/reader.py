"""A form of numbers measured elsewhere: "WORKERS took SECONDS"."""

from pathlib import Path

from scalestudy.analysis.runs import Source
from scalestudy.features.imported.base import Facts, Head, Reader, Reading, Wanted


def read(path: Path, wanted: Wanted) -> Reading:
    facts = []
    for line, text in enumerate(path.read_text().splitlines(), start=1):
        workers, seconds = text.split(" took ")
        source = Source(path.name, (line, line), "brought")
        facts.append(Facts(source, workers=int(workers), seconds=float(seconds)))
    return Reading(tuple(facts), ("Workers took seconds.",))


def recognises(head: Head) -> bool:
    return " took " in head.text


READER = Reader("brought", recognises, read)
