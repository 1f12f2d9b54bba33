"""Whether a container brings a GPU driver's libraries, where its runtime does not."""

from collections.abc import Iterable
from pathlib import Path

from scalestudy.errors import UserError
from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.profile import Site

LIBRARY = "libcuda.so.1"
FOLDERS = ("lib", "lib64", "usr/lib", "usr/lib64", "usr/local/lib", "opt")
"""Where an image may have it, at most two folders further below."""


def refuse_without_driver(site: Site, layouts: Iterable[Layout]) -> None:
    """Refuse GPUs in a Charliecloud image that has not been given the driver: ch-run brings none in.

    An image that is no folder here (a .sqfs file, a $VARIABLE) is not looked into.

    Raises:
        UserError: If the jobs have GPUs, and the image none of the driver's libraries.
    """
    container = site.container
    if container is None or container.runtime != "charliecloud" or container.gpu == "none":
        return
    image = Path(container.image)
    if not image.is_dir() or not any(each.gpus_per_node for each in layouts):
        return
    patterns = (LIBRARY, f"*/{LIBRARY}", f"*/*/{LIBRARY}")
    if not any(True for folder in FOLDERS for each in patterns for _ in (image / folder).glob(each)):
        raise UserError(
            "the GPU driver's libraries in a Charliecloud image, since ch-run brings none in",
            f"no {LIBRARY} in {image}",
            f"On a node with GPUs, run `ch-fromhost --nvidia {image}` (it needs nvidia-container-cli). "
            'Where binds bring the driver in, set gpu = "none" under [container]; to compute on CPUs, '
            'device = "cpu".',
        )
