"""The container that workers run in, and the words of a job script that start them there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from scalestudy.launch.queue.quoting import expandable, literal
from scalestudy.study.settings import StrictModel
from scalestudy.util.errors import UserError


def _texts(value: Any) -> Any:
    # What this returns is read as Python, which wants tuples.
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


class Container(StrictModel):
    """The container that workers run in."""

    image: str
    """Path of the image: a .sif file, a sandbox folder, a Charliecloud image folder, or a .sqsh file."""
    runtime: Literal["apptainer", "singularity", "charliecloud", "pyxis"] = "apptainer"
    """Program that runs the image. "pyxis" is Slurm's plugin for enroot: srun then starts every worker."""
    binds: tuple[str, ...] = Field(default=(), examples=[["/scratch/me/data"]])
    """More folders that are visible inside, as "/folder" or "/outside:/inside". The study's are added."""
    overlay: Annotated[tuple[str, ...], BeforeValidator(_texts)] = Field(
        default=(), examples=["/scratch/me/overlay.ext3:ro"]
    )
    """Overlay image with more software, or a list of them (Apptainer and Singularity). With ":ro" workers can
    share it."""
    gpu: Literal["nv", "none"] = "nv"
    """Whether the GPU driver's libraries are added when the job has GPUs. A Charliecloud image must hold them
    (`ch-fromhost --nvidia IMAGE`); write "none" if `binds` add them."""
    python: str = "python3"
    """Python inside the image, or in an overlay."""

    @field_validator("image")
    @classmethod
    def _is_here(cls, image: str) -> str:
        if "://" in image or not image.strip():
            raise ValueError("the path of an image, since jobs do not download,")
        return image


def container_table(value: Any) -> Any:
    """The table of a container, of which a path alone is the image; read as Python, which wants tuples."""
    if isinstance(value, str):
        return {"image": value}
    if isinstance(value, dict) and isinstance(value.get("binds"), list):
        return value | {"binds": tuple(value["binds"])}
    return value


SYSTEM = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "run", "sbin", "sys", "usr", "var")
)
"""Folders that an image has of its own, which the machine's must not hide."""


def container_words(container: Container, binds: Sequence[Path], *, gpus: bool) -> list[str]:
    """Words of bash that run what follows them in the container; none under pyxis: see `srun_words`.

    All runtimes pass the environment on (Apptainer all of it but PATH and LD_LIBRARY_PATH, which are the
    image's; pyxis all that the image does not set).

    Args:
        container: The container.
        binds: Folders that the workers read and write, seen inside under their own paths.
        gpus: Whether the job has GPUs.

    Raises:
        UserError: If Charliecloud cannot bind one of the folders.
    """
    if container.runtime == "pyxis":
        return []
    site_binds = [word for bind in container.binds for word in ("--bind", expandable(bind))]
    if container.runtime == "charliecloud":
        words = ["ch-run", "--cd", '"$run"', *site_binds]
        for folder in dict.fromkeys(map(_existing_in_image, binds)):
            if folder is not None and str(folder) not in container.binds:
                words += ["--bind", literal(_without(folder, ":", "ch-run"))]
        return [*words, expandable(container.image), "--"]
    words = [container.runtime, "exec"]
    if gpus and container.gpu != "none":
        words.append(f"--{container.gpu}")
    words += site_binds
    for bind in binds:
        # For --bind a comma or a colon would begin the next folder; --mount takes CSV, with doubled quotes.
        path = str(bind).replace('"', '""')
        words += ["--mount", literal(f'type=bind,"source={path}","destination={path}"')]
    for overlay in container.overlay:
        words += ["--overlay", expandable(overlay)]
    return [*words, "--pwd", '"$run"', expandable(container.image)]


def srun_words(container: Container | None, binds: Sequence[Path]) -> list[str]:
    """Words of bash for srun that have pyxis start its tasks in the container; none under other runtimes.

    Source: https://github.com/NVIDIA/pyxis/wiki/Usage

    Raises:
        UserError: If a folder's path holds what would begin the next folder, or its place inside.
    """
    if container is None or container.runtime != "pyxis":
        return []
    mounts = [expandable(bind if ":" in bind else f"{bind}:{bind}") for bind in container.binds]
    mounts += [literal(f"{_without(bind, ',:', 'pyxis')}:{bind}") for bind in binds]
    return [
        f"--container-image={expandable(container.image)}",
        *([f"--container-mounts={','.join(mounts)}"] if mounts else []),
        '--container-workdir="$run"',
    ]


def container_exports(container: Container, scratch: str | None, *, gpus: bool) -> dict[str, str]:
    """Variables of bash (quoted) that the runtime reads: its cache stays out of the home folder.

    Without scratch it is in the run's: one in /tmp another user could have made before us.
    """
    if container.runtime == "charliecloud":
        return {}
    if container.runtime == "pyxis":
        # What enroot's hook brings the driver's libraries by, where the image does not say so itself.
        wanted = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
        return wanted if gpus and container.gpu == "nv" else {"NVIDIA_VISIBLE_DEVICES": "void"}
    value = expandable(f"{scratch}/{container.runtime}") if scratch else f'"$run/.{container.runtime}"'
    return {f"{container.runtime.upper()}_CACHEDIR": value}


def _existing_in_image(path: Path) -> Path | None:
    """What Charliecloud binds to show a path: it makes no folders in an image, which has only topmost ones.

    The machine's /tmp is seen without.
    """
    if len(path.parts) < 2 or path.parts[1] == "tmp":
        return None
    return path if path.parts[1] in SYSTEM else Path("/", path.parts[1])


def _without(path: Path, separators: str, runtime: str) -> str:
    if any(separator in str(path) for separator in separators):
        raise UserError(
            f"a path without any of {separators!r}, at which {runtime} splits it",
            str(path),
            "Move the study to another path.",
        )
    return str(path)
