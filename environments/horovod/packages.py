"""Where CUDA 12 and NCCL are among this Python's packages, as assignments for a shell; or a message, and 1.

With HOROVOD_NCCL_HOME or NCCL_HOME, that NCCL instead. TARGET is the folder that Horovod goes into; "" for
this Python's own.
"""

import os
import re
import shlex
import sys
from importlib import metadata, util
from pathlib import Path

RUN_TIME = "nvidia-cuda-runtime-cu12"
NEEDED = {
    RUN_TIME: ("cuda_runtime", "lib/libcudart_static.a"),
    "nvidia-cuda-nvcc-cu12": ("cuda_nvcc", "include/crt/host_config.h"),
    "nvidia-cuda-cccl-cu12": ("cuda_cccl", "include/nv/target"),
    "nvidia-cuda-nvrtc-cu12": ("cuda_nvrtc", "lib/libnvrtc.so.12"),
}
"""What a build reads of each package: its folder in `nvidia`, and a file there."""


def folder(name: str, file: str) -> Path | None:
    """The folder of `nvidia` that holds this file; None if no package does."""
    spec = util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if Path(place, name, file).exists():
            return Path(place, name)
    return None


def nccl() -> tuple[Path, Path]:
    """NCCL's folder of headers and its library.

    Raises:
        SystemExit: There is no NCCL with its header.
    """
    named = os.environ.get("HOROVOD_NCCL_HOME") or os.environ.get("NCCL_HOME")
    home = Path(named) if named else folder("nccl", "include/nccl.h")
    if home is not None and (home / "include" / "nccl.h").exists():
        for library in (home / sub / "libnccl.so.2" for sub in ("lib", "lib64")):
            if library.exists():
                return home / "include", library
    sys.exit(
        f"expected NCCL with its header nccl.h and libnccl.so.2; received {home or 'none'}. "
        "Install nvidia-nccl-cu12, or name a folder: NCCL_HOME=FOLDER"
    )


def version(header: Path) -> str:
    """NCCL's version, by its header."""
    text = (header / "nccl.h").read_text(errors="replace")
    return ".".join(
        re.findall(r"^#define NCCL_(?:MAJOR|MINOR|PATCH) +(\d+)", text, re.MULTILINE)
    )


def run_path(library: Path) -> str:
    """Where Horovod's library looks for NCCL: beside itself if both lie in one environment, or there."""
    ours = next(
        (place for place in map(Path, sys.path) if place / "nvidia" in library.parents),
        None,
    )
    if ours is None or os.environ.get("TARGET"):
        return str(library.parent.resolve())
    return str(Path("$ORIGIN/../..") / library.parent.relative_to(ours))


def main() -> None:
    """Print the assignments."""
    found = {package: folder(*place) for package, place in NEEDED.items()}
    missing = [package for package, place in found.items() if place is None]
    if missing:
        sys.exit(
            f"expected CUDA 12 for building, as packages; received none of {', '.join(missing)}. "
            "Install the pinned ones: pip install --require-hashes -r requirements/gpu.txt"
        )
    header, library = nccl()
    for name, value in {
        "cuda_version": metadata.version(RUN_TIME),
        "nccl_version": version(header),
        "cuda_includes": ";".join(str(place / "include") for place in found.values()),
        "cuda_runtime": found[RUN_TIME] / NEEDED[RUN_TIME][1],
        "nccl_include": header,
        "nccl_library": library,
        "run_path": run_path(library),
    }.items():
        print(f"{name}={shlex.quote(str(value))}")


if __name__ == "__main__":
    main()
