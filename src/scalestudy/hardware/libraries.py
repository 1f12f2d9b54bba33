"""Libraries and tools that distributed training is built from: NCCL, CUDA, MPI, the compiler."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

LIMIT = 20.0
NCCL_HOMES = ("NCCL_HOME", "NCCL_ROOT", "NCCL_DIR", "EBROOTNCCL", "HOROVOD_NCCL_HOME")
"""Variables that modules name NCCL's folder with (the fourth is EasyBuild's)."""
CUDA_HOMES = ("CUDA_HOME", "CUDA_ROOT", "CUDA_PATH", "EBROOTCUDA")


def nccl_libraries(variables: Mapping[str, str]) -> list[str]:
    """NCCL libraries where Horovod's build and TensorFlow look, files once each, links followed."""
    found: dict[str, None] = {}
    for folder in _folders(variables):
        for file in sorted(folder.glob("libnccl.so*")):
            found[os.path.realpath(file)] = None
    return list(found)


def cuda_home(variables: Mapping[str, str]) -> str | None:
    """Folder of the CUDA toolkit, by its variables or by nvcc's place."""
    for name in CUDA_HOMES:
        if variables.get(name):
            return variables[name]
    nvcc = shutil.which("nvcc", path=variables.get("PATH"))
    return str(Path(nvcc).resolve().parents[1]) if nvcc else None


def mpi_version() -> str | None:
    """Version and place of mpirun; None without one."""
    return _version("mpirun")


def compiler_version() -> str | None:
    """Version and place of g++; None without one."""
    return _version("g++")


def _version(program: str) -> str | None:
    place = shutil.which(program)
    if place is None:
        return None
    try:
        done = subprocess.run(
            [place, "--version"], capture_output=True, text=True, timeout=LIMIT, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return place
    first = (done.stdout.strip().splitlines() or [""])[0]
    return f"{first} ({place})" if re.search(r"\d", first) else place


def _folders(variables: Mapping[str, str]) -> Iterator[Path]:
    for name in NCCL_HOMES:
        if variables.get(name):
            yield from (Path(variables[name], sub) for sub in ("lib", "lib64"))
    for part in variables.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if part:
            yield Path(part)
    for entry in sys.path:
        yield Path(entry, "nvidia", "nccl", "lib")
    machine = os.uname().machine
    yield from map(Path, (f"/usr/lib/{machine}-linux-gnu", "/usr/lib64", "/usr/local/lib"))
