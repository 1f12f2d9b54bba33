"""Who else reaches the ports that workers listen at."""

from collections.abc import Mapping, Sequence

from scalestudy.features.check.line import Line, passed, warned
from scalestudy.launch.local.reserve import NETWORK, SHARED
from scalestudy.study.engines import EngineTraits


def judge_exposure(
    where: str,
    variables: Mapping[str, str],
    engine: EngineTraits,
    *,
    needs: Sequence[str] | None,
    port: int | None,
) -> Line:
    """Whether others can connect to the workers, and what they could do.

    Args:
        where: Host of rank 0, for the line.
        variables: Of rank 0.
        engine: Whose processes they are.
        needs: What the study's collectives must meet (see `Plan.needs`); None without a study.
        port: First port of the run.
    """
    network = variables.get(NETWORK)
    if network is not None and network.isdigit():
        return passed(
            "exposure", where, "workers have a network of their own: nobody else reaches their ports"
        )
    ways = [each.rendezvous for each in (engine.collectives if needs is None else engine.meeting(needs))]
    known = [way for way in ways if way is not None]
    worst = next((way for way in known if way.everywhere), known[0] if known else None)
    if worst is None:
        return passed("exposure", where, "workers listen nowhere")
    if network is not None:
        why = "as SCALESTUDY_NETWORK says" if network == SHARED else network
        seen = f"no network of their own ({why}): other users of this machine can {worst.harm}"
        action = (
            "Allow user namespaces (sysctl user.max_user_namespaces), or use a strategy of one process "
            "(mirrored): it listens nowhere."
        )
        return warned("exposure", where, seen, action)
    if worst.everywhere:
        ports = "at all interfaces" if port is None else f"at all interfaces, from port {port} on"
        seen = f"{worst.label} listens {ports}: who reaches that can {worst.harm}"
        action = "Ask for whole nodes (--exclusive), and the site for a firewall around jobs; or use horovod."
        return warned("exposure", where, seen, action)
    return passed(
        "exposure", where, f"{worst.label} listens at one interface; its rendezvous asks for the run's secret"
    )
