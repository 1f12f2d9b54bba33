"""Change Horovod's source for TensorFlow 2.21: `patch.py FOLDER [packages]`.

With "packages", for CUDA 12 from these. Every change names how often its text stands there: another source
ends this with a message.
"""

import re
import sys
from pathlib import Path

# These includes do not resolve with TensorFlow 2.21. The file is empty without a GPU; with one it holds
# the XLA kernels, so Horovod inside XLA is off.
EVERYWHERE = [
    ("horovod/tensorflow/CMakeLists.txt", r"^.*xla_mpi_ops\.cc.*\n", "", 1),
    # The connections that carry the sums ignored HOROVOD_GLOO_IFACE, and took the address that a node's own
    # name has: the loopback on a node with Debian's default hosts file, the slow network on another.
    (
        "horovod/common/gloo/gloo_context.cc",
        r"(::InitializeForProcessSet\((?:(?!^})[\s\S])*?)iface = gloo_iface_;",
        r"\1iface = global_context.gloo_iface_;",
        1,
    ),
    # TensorFlow's libraries no longer export this function; the method does what it did.
    (
        "horovod/tensorflow/mpi_ops.cc",
        r"^GpuStreamHandle AsGpuStreamValue\(Stream\* stream\);\n",
        "",
        1,
    ),
    (
        "horovod/tensorflow/mpi_ops.cc",
        r"stream_executor::gpu::AsGpuStreamValue\(\s*([\w>-]+->stream\(\))\)",
        r"static_cast<GpuStreamHandle>(\1->platform_specific_handle().stream)",
        12,
    ),
    # Only what is asked for is in the run path, and no folder of the build.
    (
        "CMakeLists.txt",
        r"^project\(horovod CXX\)\n",
        "project(horovod CXX)\n"
        "set(CMAKE_BUILD_WITH_INSTALL_RPATH TRUE)\nset(CMAKE_INSTALL_RPATH $ENV{HOROVOD_RUN_PATH})\n",
        1,
    ),
]
# The packages of CUDA hold no nvcc, and one of another CUDA that stands in PATH must not be taken.
PACKAGES = [
    (
        "CMakeLists.txt",
        r"^set\(CMAKE_CUDA_HOST_COMPILER[\s\S]*?(?=^macro\(ADD_CUDA\))",
        "",
        1,
    ),
    (
        "CMakeLists.txt",
        r"^    find_package\(CUDAToolkit REQUIRED\)\n.*CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES.*\n",
        "    include_directories(SYSTEM $ENV{HOROVOD_CUDA_INCLUDES})\n"
        "    list(APPEND LINKER_LIBS $ENV{HOROVOD_CUDA_RUNTIME} dl rt pthread)\n",
        1,
    ),
    (
        "horovod/common/ops/cuda/CMakeLists.txt",
        r"\A[\s\S]*\Z",
        "set(CMAKE_CXX_STANDARD 17)\nadd_library(horovod_cuda_kernels launch.cc)\n",
        1,
    ),
]


def changed(text: str, pattern: str, new: str, times: int, where: str) -> str:
    """The text with every match replaced.

    Raises:
        SystemExit: There are more or fewer matches than `times`.
    """
    result, found = re.subn(pattern, new, text, flags=re.MULTILINE)
    if found != times:
        sys.exit(
            f"expected {pattern!r} {times} times in {where}; received {found}. Take Horovod 0.28.1."
        )
    return result


def main(folder: Path, *more: str) -> None:
    """Change the files."""
    for name, pattern, new, times in [
        *EVERYWHERE,
        *(PACKAGES if "packages" in more else []),
    ]:
        file = folder / name
        file.write_text(changed(file.read_text(), pattern, new, times, str(file)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
