"""The container that workers run in, and the command in a job script that starts them there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from scalestudy.config.settings import StrictModel
from scalestudy.launch.queue.quoting import expandable, literal
from scalestudy.util.errors import UserError


def _texts(value: Any) -> Any:
    # pydantic validates the returned value as Python and expects tuples.
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
    """Return the table of a container, also from the path of an image alone, with lists as tuples."""
    if isinstance(value, str):
        return {"image": value}
    if isinstance(value, dict) and isinstance(value.get("binds"), list):
        return value | {"binds": tuple(value["binds"])}
    return value


SYSTEM = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "run", "sbin", "sys", "usr", "var")
)
"""Folders of the image itself, which those of the machine must not hide."""


def container_command(container: Container, binds: Sequence[Path], *, gpus: bool) -> list[str]:
    """Return words of bash that run a command in the container; none for pyxis (see `srun_options`).

    All runtimes pass the environment on: Apptainer except PATH and LD_LIBRARY_PATH, which are the image's;
    pyxis except variables that the image sets.

    Args:
        container: The container.
        binds: Folders that the workers read and write, mounted inside under the same paths.
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
        # In --bind, a comma or a colon separates; --mount takes CSV, in which quotes are doubled.
        path = str(bind).replace('"', '""')
        words += ["--mount", literal(f'type=bind,"source={path}","destination={path}"')]
    for overlay in container.overlay:
        words += ["--overlay", expandable(overlay)]
    return [*words, "--pwd", '"$run"', expandable(container.image)]


def srun_options(container: Container | None, binds: Sequence[Path]) -> list[str]:
    """Return options of srun that make pyxis start tasks in the container; none for other runtimes.

    Source: https://github.com/NVIDIA/pyxis/wiki/Usage

    Raises:
        UserError: If the path of a folder contains a separator of mounts.
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
    """Return variables, quoted for bash, that the runtime reads; they keep its cache out of the home folder.

    Without scratch, the cache is in the run's folder: in /tmp, another user might own the folder.
    """
    if container.runtime == "charliecloud":
        return {}
    if container.runtime == "pyxis":
        # These make enroot's hook mount the driver's libraries if the image does not set them itself.
        wanted = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
        return wanted if gpus and container.gpu == "nv" else {"NVIDIA_VISIBLE_DEVICES": "void"}
    value = expandable(f"{scratch}/{container.runtime}") if scratch else f'"$run/.{container.runtime}"'
    return {f"{container.runtime.upper()}_CACHEDIR": value}


def _existing_in_image(path: Path) -> Path | None:
    """Return the folder that Charliecloud must bind to make a path visible; None for paths below /tmp.

    Charliecloud creates no folders in an image, which has only top-level ones. It mounts /tmp by itself.
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
