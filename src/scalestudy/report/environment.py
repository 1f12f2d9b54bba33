"""The machines and versions that the runs of a study were made with."""

from collections.abc import Sequence

from scalestudy import units
from scalestudy.analysis.runs import Run
from scalestudy.measure.environment import told
from scalestudy.study.records import RankRecord


def environments(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Name and value of what the runs recorded; values that differ between runs are all listed."""
    ranks = [rank for run in runs for rank in run.ranks]
    found: dict[str, dict[str, None]] = {}
    for rank in ranks:
        for name, value in _facts(rank):
            if value:
                found.setdefault(name, {})[value] = None
    return [(name, "; ".join(values)) for name, values in found.items()]


def _facts(rank: RankRecord) -> list[tuple[str, str]]:
    versions = [(_proper(name), version) for name, version in rank.versions.items()]
    memory = units.size(rank.memory_bytes) if rank.memory_bytes else ""
    build = [(f"Build: {name}", str(value)) for name, value in rank.build.items()]
    variables = ", ".join(f"{name}={value}" for name, value in told(rank.environment).items())
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
        ("Variables", variables),
    ]


def _proper(name: str) -> str:
    known = {"tensorflow": "TensorFlow", "numpy": "NumPy"}
    return known.get(name.lower(), name[:1].upper() + name[1:])
