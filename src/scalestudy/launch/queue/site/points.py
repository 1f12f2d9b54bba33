"""The points of a study as a site can run them."""

from scalestudy.errors import UserError
from scalestudy.launch.queue.site.profile import Site
from scalestudy.study.expand import expand
from scalestudy.study.file import Study
from scalestudy.study.point import Point


def expand_for(study: Study, site: Site) -> list[Point]:
    """Points of a study on the nodes of a site; `native` is mirrored on one node, multiworker across.

    Raises:
        UserError: If a combination is impossible there, or if the sweep names several sites.
    """
    for key in ("launch.on", "launch.site"):
        if key in study.sweep.other:
            raise UserError(
                f"one {key} for the whole study",
                f"it in [sweep]{study.place.of(f'sweep.{key}')}",
                "Write it under [launch]; to compare sites, run the study once on each.",
            )
    machine = site.machine()
    return expand(
        study, gpus=machine.gpus, cores=machine.cores, cluster=True, tasks_per_node=machine.tasks_per_node
    )
