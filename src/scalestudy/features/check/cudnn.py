"""Whether cuDNN has code for the GPUs: it does not compile any at run time."""

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from scalestudy.features.check.line import Line, failed
from scalestudy.hardware.devices import Gpu

PACKAGE = "nvidia-cudnn-cu12"
TURING = (7, 5)
WITHOUT_OLDER = Version("9.11")
"""The first cuDNN with no code before Turing; seen with cuobjdump in the packages.

Source: https://docs.nvidia.com/deeplearning/cudnn/backend/latest/release-notes.html
"""


def judge_cudnn(where: str, version: str | None, gpus: Sequence[Gpu]) -> list[Line]:
    """A line for each kind of GPU that cuDNN has no code for.

    Args:
        where: Host, for the lines.
        version: Of the package; None without it.
        gpus: Those that the workers may use.
    """
    if version is None or not _at_least(version, WITHOUT_OLDER):
        return []
    old = {(gpu.name, gpu.capability) for gpu in gpus if gpu.capability and gpu.capability < TURING}
    release = ".".join(version.split(".")[:2])
    return [
        failed(
            "builds",
            where,
            f"cuDNN {release} has no code for this GPU ({name}, {major}.{minor})",
            "Build the environment for it: DEVICE=gpu-volta environments/venv.sh FOLDER (cuDNN before 9.11).",
        )
        for name, (major, minor) in sorted(old)
    ]


def _at_least(version: str, wanted: Version) -> bool:
    try:
        return Version(version) >= wanted
    except InvalidVersion:
        return False
