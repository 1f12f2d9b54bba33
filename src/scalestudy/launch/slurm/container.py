"""The words before a worker's command that run it in a container. Pure."""

from collections.abc import Sequence
from pathlib import Path

from scalestudy.launch.slurm.quoting import expandable, literal
from scalestudy.launch.slurm.site import Container


def container_words(container: Container, binds: Sequence[Path], *, gpus: bool) -> list[str]:
    """Words of bash that run what follows them in the container.

    All runtimes pass the environment on. The folders in `binds` are seen inside under their own paths;
    the working folder too, which is a run's.

    Args:
        container: The container.
        binds: Folders that the workers read and write.
        gpus: Whether the job has GPUs.
    """
    if container.runtime == "charliecloud":
        return _charliecloud(container, binds)
    return _apptainer(container, binds, gpus=gpus)


def container_exports(container: Container, scratch: str | None) -> dict[str, str]:
    """Variables of bash (quoted) that the runtime reads: caches out of the home folder."""
    if container.runtime == "charliecloud":
        return {}
    cache = container.cache or (f"{scratch}/{container.runtime}" if scratch else None)
    if cache is None:
        return {}
    prefix = container.runtime.upper()
    return {f"{prefix}_CACHEDIR": expandable(cache), f"{prefix}_TMPDIR": expandable(cache)}


def _apptainer(container: Container, binds: Sequence[Path], *, gpus: bool) -> list[str]:
    words = [container.runtime, "exec"]
    if gpus and container.gpu != "none":
        words.append(f"--{container.gpu}")
    for bind in binds:
        # A comma or a colon would be read as the next bind or the place inside.
        words += ["--mount", literal(_mount(str(bind)))]
    for given in container.binds:
        words += ["--bind", expandable(given)]
    if container.overlay:
        words += ["--overlay", expandable(container.overlay)]
    return [*words, "--pwd", '"$run"', expandable(container.image)]


def _mount(path: str) -> str:
    """Apptainer's --mount, which takes any path: CSV, a quote is doubled."""
    doubled = path.replace('"', '""')
    return f'type=bind,"source={doubled}","destination={doubled}"'


def _charliecloud(container: Container, binds: Sequence[Path]) -> list[str]:
    words = ["ch-run", "--cd", '"$run"']
    for bind in binds:
        words += ["--bind", literal(f"{bind}:{bind}")]
    for given in container.binds:
        words += ["--bind", expandable(given)]
    return [*words, expandable(container.image), "--"]
