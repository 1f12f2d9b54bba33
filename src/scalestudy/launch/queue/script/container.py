"""The words before a worker's command that run it in a container. Pure."""

from collections.abc import Sequence
from pathlib import Path

from scalestudy.errors import UserError
from scalestudy.launch.queue.script.quoting import expandable, literal
from scalestudy.launch.queue.site.profile import Container

SYSTEM = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "run", "sbin", "sys", "usr", "var")
)
"""Folders that an image has of its own, which the machine's must not hide."""


def container_words(container: Container, binds: Sequence[Path], *, gpus: bool) -> list[str]:
    """Words of bash that run what follows them in the container.

    All runtimes pass the environment on (Apptainer all of it but PATH and LD_LIBRARY_PATH, which are the
    image's; pyxis all that the image does not set). The folders in `binds` are seen inside under their own
    paths. Under pyxis it is srun that enters the container: see `srun_words`.

    Args:
        container: The container.
        binds: Folders that the workers read and write.
        gpus: Whether the job has GPUs.

    Raises:
        UserError: If Charliecloud cannot bind one of the folders.
    """
    if container.runtime == "pyxis":
        return []
    if container.runtime == "charliecloud":
        return _charliecloud(container, binds)
    return _apptainer(container, binds, gpus=gpus)


def srun_words(container: Container | None, binds: Sequence[Path]) -> list[str]:
    """Words of bash for srun that have pyxis start its tasks in the container; none under other runtimes.

    Source: https://github.com/NVIDIA/pyxis/wiki/Usage

    Raises:
        UserError: If a folder's path holds what would begin the next folder, or its place inside.
    """
    if container is None or container.runtime != "pyxis":
        return []
    mounts = [expandable(each if ":" in each else f"{each}:{each}") for each in container.binds]
    for bind in binds:
        if "," in str(bind) or ":" in str(bind):
            raise UserError(
                "a path without commas and colons, at which pyxis splits it", str(bind),
                "Keep the study elsewhere.",
            )  # fmt: skip
        mounts.append(literal(f"{bind}:{bind}"))
    mounted = [f"--container-mounts={','.join(mounts)}"] if mounts else []
    return [f"--container-image={expandable(container.image)}", *mounted, '--container-workdir="$run"']


def container_exports(container: Container, scratch: str | None, *, gpus: bool) -> dict[str, str]:
    """Variables of bash (quoted) that the runtime reads: its cache stays out of the home folder.

    Without a folder named for it, it is in the run's: one in /tmp another user could have made before us.
    """
    if container.runtime == "charliecloud":
        return {}
    if container.runtime == "pyxis":
        # What enroot's hook brings the driver's libraries by, where the image does not say so itself.
        wanted = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
        return wanted if gpus and container.gpu == "nv" else {"NVIDIA_VISIBLE_DEVICES": "void"}
    name = f"{container.runtime.upper()}_CACHEDIR"
    cache = container.cache or (f"{scratch}/{container.runtime}" if scratch else None)
    return {name: expandable(cache) if cache else f'"$run/.{container.runtime}"'}


def _apptainer(container: Container, binds: Sequence[Path], *, gpus: bool) -> list[str]:
    words = [container.runtime, "exec"]
    if gpus and container.gpu != "none":
        words.append(f"--{container.gpu}")
    for given in container.binds:
        words += ["--bind", expandable(given)]
    for bind in binds:
        # For --bind, a comma or a colon would begin the next folder or the place inside.
        words += ["--mount", literal(_mount(str(bind)))]
    for overlay in container.overlay:
        words += ["--overlay", expandable(overlay)]
    return [*words, "--pwd", '"$run"', expandable(container.image)]


def _mount(path: str) -> str:
    """Apptainer's --mount, which takes any path: CSV, in which a quote is doubled."""
    doubled = path.replace('"', '""')
    return f'type=bind,"source={doubled}","destination={doubled}"'


def _charliecloud(container: Container, binds: Sequence[Path]) -> list[str]:
    words = ["ch-run", "--cd", '"$run"']
    for given in container.binds:
        words += ["--bind", expandable(given)]
    for place in dict.fromkeys(_place(bind) for bind in binds):
        if place is not None and str(place) not in container.binds:
            words += ["--bind", literal(_bindable(place))]
    return [*words, expandable(container.image), "--"]


def _place(path: Path) -> Path | None:
    """What is bound to see a path: ch-run makes no folders in an image, which has only the topmost ones.

    The machine's /tmp is seen without.
    """
    if len(path.parts) < 2 or path.parts[1] == "tmp":
        return None
    return path if path.parts[1] in SYSTEM else Path("/", path.parts[1])


def _bindable(path: Path) -> str:
    if ":" in str(path):
        raise UserError(
            "a path without a colon, at which ch-run splits it", str(path), "Keep the study elsewhere."
        )
    return str(path)
