"""Who else reaches the ports that workers listen at."""

from collections.abc import Mapping, Sequence

from scalestudy.check.line import Line, passed, warned
from scalestudy.launch.local.reserve import NETWORK, SHARED
from scalestudy.engines.tensorflow.collective_table import meeting
from scalestudy.study.strategies import traits


def judge_exposure(
    where: str, variables: Mapping[str, str], *, needs: Sequence[str] | None, port: int | None
) -> Line:
    """Whether others can connect to the workers, and what they could do.

    TensorFlow's gRPC server listens at all interfaces and has no setting for that, nor for who may connect.
    Horovod's rendezvous listens at one and asks for the run's secret; Gloo's connections for data are
    made at one interface, and ask for nothing: who connects there can end a run.

    Args:
        where: Host of rank 0, for the line.
        variables: Of rank 0.
        needs: What the study's collectives must meet (see `Plan.needs`); None without a study.
        port: First port of the run.
    """
    network = variables.get(NETWORK)
    if network is not None and network.isdigit():
        return passed(
            "exposure", where, "workers have a network of their own: nobody else reaches their ports"
        )
    grpc = needs is None or any(traits(each.strategy).meets == "tensorflow" for each in meeting(needs))
    acts = "have TensorFlow's workers act with your rights" if grpc else "end a run of Horovod"
    if network is not None:
        why = "as SCALESTUDY_NETWORK says" if network == SHARED else network
        seen = f"no network of their own ({why}): other users of this machine can {acts}"
        action = (
            "Allow user namespaces (sysctl user.max_user_namespaces), or use mirrored: it listens nowhere."
        )
        return warned("exposure", where, seen, action)
    if grpc:
        ports = "at all interfaces" if port is None else f"at all interfaces, from port {port} on"
        seen = f"TensorFlow listens {ports}: who reaches that can {acts}"
        action = "Ask for whole nodes (--exclusive), and the site for a firewall around jobs; or use horovod."
        return warned("exposure", where, seen, action)
    return passed(
        "exposure", where, "Horovod listens at one interface; its rendezvous asks for the run's secret"
    )
