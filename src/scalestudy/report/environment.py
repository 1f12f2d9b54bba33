"""The machines and software versions of a study's runs."""

from collections.abc import Mapping, Sequence

from scalestudy.analysis.runs import Run
from scalestudy.measure.environment import recorded_variables
from scalestudy.report.document import Heading, Table
from scalestudy.study.engines import package_labels
from scalestudy.study.records import RankRecord
from scalestudy.util import units

LONGEST = 80
"""Characters of the values of a variable that differs between ranks or runs."""


def environments(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Name and value of what the runs recorded; all values are listed if runs differ."""
    ranks = [rank for run in runs for rank in run.ranks]
    facts: dict[str, dict[str, None]] = {}
    variables: dict[str, dict[str, None]] = {}
    for rank in ranks:
        for name, value in _facts(rank):
            facts.setdefault(name, {}).update({value: None} if value else {})
        for name, value in recorded_variables(rank.environment).items():
            variables.setdefault(name, {})[value] = None
    listed = [(name, "; ".join(values)) for name, values in facts.items() if values]
    settings = ", ".join(f"{name}={_either(list(values))}" for name, values in sorted(variables.items()))
    return [*listed, ("Variables", settings)] if settings else listed


def environment_table(runs: Sequence[Run], caption: str = "") -> Table | None:
    """The recorded environment as a table; None if nothing was recorded."""
    rows = tuple(environments(runs))
    headings = (Heading("What", numeric=False), Heading("Recorded", numeric=False))
    return Table(headings, rows, caption, name="environment") if rows else None


def _either(values: Sequence[str]) -> str:
    """The values of a variable; their number if they are long, as the addresses of TF_CONFIG are."""
    text = " or ".join(values)
    return text if len(values) == 1 or len(text) <= LONGEST else f"({len(values)} different values)"


def _facts(rank: RankRecord) -> list[tuple[str, str]]:
    versions = [(_proper(name), version) for name, version in rank.versions.items()]
    memory = units.size(rank.memory_bytes) if rank.memory_bytes else ""
    build = [(f"Build: {name}", _built(value)) for name, value in rank.build.items()]
    return [
        ("Host", rank.host),
        ("Processor", rank.cpu_model),
        ("Memory", memory),
        ("Devices", ", ".join(rank.devices)),
        ("Cores of a rank", str(len(rank.cpus)) if rank.cpus else ""),
        ("Threads of a rank", str(rank.threads)),
        ("Driver", rank.driver or ""),
        ("Kernel", rank.kernel),
        ("Environment", f"{rank.environment_id} ({rank.environment_name})" if rank.environment_id else ""),
        *versions,
        *build,
        ("Placement from", rank.placement_source),
    ]


def _built(value: object) -> str:
    """Settings of a build: `gloo, controller gloo, no mpi`."""
    if not isinstance(value, Mapping):
        return str(value)
    words = []
    for key, setting in value.items():
        name = str(key).removeprefix("is_").replace("_", " ")
        words.append(
            (name if setting else f"no {name}") if isinstance(setting, bool) else f"{name} {setting}"
        )
    return ", ".join(words)


def _proper(name: str) -> str:
    known = {"numpy": "NumPy"} | package_labels()
    return known.get(name.lower(), name[:1].upper() + name[1:])
