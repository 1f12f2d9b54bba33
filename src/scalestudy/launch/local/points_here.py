"""A study's points on the devices and cores of this machine."""

from scalestudy.errors import UserError
from scalestudy.machine import cores, devices
from scalestudy.machine.no_gpus import why_unseen
from scalestudy.study.expand import expand
from scalestudy.study.file import Study
from scalestudy.study.point import Point


def points_here(study: Study) -> list[Point]:
    """Points of a study, as this machine can run them.

    Raises:
        UserError: If one is impossible here; of GPUs that are asked for and not seen with the likely reason.
    """
    gpus = devices.gpus()
    asked = [study.launch.device, *study.sweep.other.get("launch.device", ())]
    if "gpu" in asked and not gpus:
        reason = why_unseen()
        raise UserError(
            'a GPU for launch.device = "gpu"',
            f"none{study.place.of('launch.device', 'sweep.launch.device')}: {reason.words}",
            reason.action,
        )
    return expand(
        study,
        gpus=gpus,
        cores=len(cores.granted()),
        capability=devices.lowest_capability(),
        node_gpus=devices.gpus_of_node(),
    )
