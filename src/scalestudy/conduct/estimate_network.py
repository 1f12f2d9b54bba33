"""The network of an estimate: from reports of checks and topologies, from a site profile, from options."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.errors import UserError
from scalestudy.units import bandwidth_of, latency_of

if TYPE_CHECKING:
    from scalestudy.analysis.foresight.network import Measured, Network, Stated
    from scalestudy.launch.queue.site import Site

CHECKED = "report.json"
"""What a check leaves in its folder."""


@dataclass(frozen=True)
class NetworkOptions:
    """What the user says of the network; texts as typed, None where nothing was said.

    Attributes:
        checks: Files of `check --format json` and `topology --format json`, or folders of checks.
        site: Name or path of a site profile that states its network.
        bandwidth: Of a node's link to the network.
        latency: Of the smallest message between nodes.
        node_bandwidth: Between devices of a node.
        node_latency: Likewise.
        storage_bandwidth: Of the shared file system.
        per_node: Workers of a node.
    """

    checks: tuple[Path, ...] = ()
    site: str | None = None
    bandwidth: str | None = None
    latency: str | None = None
    node_bandwidth: str | None = None
    node_latency: str | None = None
    storage_bandwidth: str | None = None
    per_node: int | None = None


def network_of(options: NetworkOptions, base: Path) -> "Network":
    """The network; options count before the site's profile, and both before what was measured.

    Args:
        options: What is said.
        base: Folder that a site's relative path is seen from.

    Raises:
        UserError: If something of it cannot be read, or if nothing tells a latency and a bandwidth.
    """
    from scalestudy.analysis.foresight.network import Network
    from scalestudy.launch.queue.site import find_site

    site = find_site(options.site, base) if options.site is not None else None
    measured = [row for file in options.checks for row in _timings(file)]
    found = Network(
        measured=tuple(measured),
        across=_stated(
            ("--bandwidth", options.bandwidth, "--latency", options.latency),
            (site and site.network_bandwidth, site and site.network_latency), site,
        ),
        within=_stated(
            ("--node-bandwidth", options.node_bandwidth, "--node-latency", options.node_latency),
            (site and site.node_bandwidth, site and site.node_latency), site,
        ),
        per_node=options.per_node or (site.machine().workers_per_node(1) if site else None),
        storage=_storage(options, site),
        sources=tuple(file.name for file in options.checks),
    )  # fmt: skip
    if found.across is None and found.within is None and not measured:
        raise UserError(
            "latency and bandwidth of the network",
            "none" if site is None else f"a site profile ({site.name}) that states none",
            "Measure them, `scalestudy check STUDY --submit --format json > check.json` and `--from-check "
            "check.json`; or state them, `--bandwidth 100Gbit --latency 2us`.",
        )
    return found


def _stated(
    options: tuple[str, str | None, str, str | None], of_site: tuple[Any, Any], site: "Site | None"
) -> "Stated | None":
    from scalestudy.analysis.foresight.network import Stated

    rate_name, rate, time_name, time = options
    source = "stated with the command"
    if rate is None and time is None:
        (rate, time), source = of_site, f"stated by the site profile {site.name}" if site else ""
        rate_name, time_name = "a bandwidth", "a latency"
    if rate is None and time is None:
        return None
    if rate is None or time is None:
        missing, given = (rate_name, time_name) if rate is None else (time_name, rate_name)
        raise UserError(f"{rate_name} and {time_name} together", f"{given} alone", f"Add {missing}.")
    return Stated(_value(rate_name, rate, bandwidth_of), _value(time_name, time, latency_of), source)


def _storage(options: NetworkOptions, site: "Site | None") -> float | None:
    text = options.storage_bandwidth or (site.storage_bandwidth if site else None)
    return None if text is None else _value("--storage-bandwidth", text, bandwidth_of)


def _value(name: str, text: str, read: Any) -> float:
    try:
        return float(read(text))
    except ValueError as error:
        raise UserError(f"{error} for {name}", repr(text), "Correct it.") from None


def _timings(path: Path) -> "list[Measured]":
    """All-reduces that a check, or `topology`, has timed."""
    from scalestudy.analysis.foresight.network import Measured
    from scalestudy.files import contents
    from scalestudy.strategies.collective_table import COLLECTIVES

    file = path / CHECKED if path.is_dir() else path
    names = {each.label: each.name for each in COLLECTIVES}
    try:
        told = json.loads(contents(file))
        if "all_reduce" in told:
            rows = [row | {"hosts": 1, "collective": names[row["collective"]]} for row in told["all_reduce"]]
        else:
            rows = told["bandwidth"]
        found = [
            Measured(
                str(row["collective"]),
                int(row["ranks"]),
                None if row.get("hosts") is None else int(row["hosts"]),
                int(row["bytes"]),
                float(row["seconds"]),
            )
            for row in rows
        ]  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise UserError(
            "what `scalestudy check` or `topology` prints with --format json, or the folder of a check",
            f"{file}: {reason}",
            "Name such a file with --from-check.",
        ) from error
    if not found:
        raise UserError(
            "a check in which all-reduces were timed", f"{file}, without any",
            "Check again with two ranks or more, and without --skip bandwidth.",
        )  # fmt: skip
    return found
