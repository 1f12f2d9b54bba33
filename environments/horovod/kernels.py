"""Compile Horovod's CUDA kernels by NVRTC into a C++ header: `kernels.py FOLDER_OF_ITS_KERNELS HEADER`.

The packages of CUDA 12 hold NVRTC and no nvcc. It compiles for GPUs alone: what runs on the host is cut off
here, and is in launch.cc. Source of the calls: https://docs.nvidia.com/cuda/nvrtc/index.html
"""

import ctypes
import re
import sys
from pathlib import Path

from packages import NEEDED, folder

ARCHITECTURES = ("sm_60", "sm_70", "sm_80", "sm_90", "sm_100", "sm_120", "compute_90")
"""TensorFlow's, and Blackwell's; each serves later GPUs of its generation, the last one all later ones."""
SCALED = ("uint8_t", "int8_t", "int32_t", "int64_t", "__half", "float", "double")
FACTORS = {"__half": "__half", "float": "float"}
"""What a type is scaled by, where not by double: as in Horovod's own calls."""
NAMES = [
    "batched_memcpy_k<8>",
    "scale_buffer_half2_k",
    *(f"scale_buffer_k<{each}, {FACTORS.get(each, 'double')}>" for each in SCALED),
    *(
        f"batched_scaled_memcpy_k<{each}, 8, {FACTORS.get(each, 'double')}>"
        for each in SCALED
    ),
]
TYPES = """\
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef int int32_t;
typedef long int64_t;
"""


def device_part(source: str, header: str) -> str:
    """The kernels, and the structure that they take.

    Args:
        source: cuda_kernels.cu.
        header: cuda_kernels.h.

    Raises:
        SystemExit: The source is not the one that this was written for.
    """
    kernels, functions = re.subn(
        r"^void \w+\(.*?^}$", "", source, flags=re.MULTILINE | re.DOTALL
    )
    structure = re.search(
        r"^#define BATCHED_D2D_CAPACITY.*?^};$", header, re.MULTILINE | re.DOTALL
    )
    if functions != 3 or structure is None:
        sys.exit(
            f"expected the kernels of Horovod 0.28.1, with 3 functions; received {functions}. "
            f"Correct {__file__}"
        )
    kernels = re.sub(
        r'^#include ("cuda_kernels.h"|<stdexcept>)$', "", kernels, flags=re.MULTILINE
    )
    return f"{TYPES}{structure[0]}\n}} }}\n{kernels}"


class Compiler:
    """NVRTC of this Python's packages."""

    def __init__(self) -> None:
        name, file = NEEDED["nvidia-cuda-nvrtc-cu12"]
        self.library = ctypes.CDLL(str(folder(name, file) / file))

    def call(self, name: str, *arguments: object) -> None:
        """Call it.

        Raises:
            SystemExit: It has failed.
        """
        code = getattr(self.library, name)(*arguments)
        if code:
            self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
            sys.exit(
                f"expected {name} to work; received {self.library.nvrtcGetErrorString(code).decode()}"
            )

    def read(self, program: ctypes.c_void_p, what: str) -> bytes:
        """One of its answers that are asked by size and by content."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw

    def compiled(self, source: str, architecture: str) -> tuple[bytes, list[str]]:
        """Code for an architecture, and the names that the kernels have in it."""
        program = ctypes.c_void_p()
        self.call(
            "nvrtcCreateProgram",
            ctypes.byref(program),
            source.encode(),
            b"cuda_kernels.cu",
            0,
            None,
            None,
        )
        expressions = [f"horovod::common::{name}".encode() for name in NAMES]
        for expression in expressions:
            self.call("nvrtcAddNameExpression", program, expression)
        includes = [
            folder(*NEEDED[each]) / "include"
            for each in ("nvidia-cuda-runtime-cu12", "nvidia-cuda-nvcc-cu12")
        ]
        options = [
            f"--gpu-architecture={architecture}",
            "-w",
            *(f"--include-path={each}" for each in includes),
        ]
        words = (ctypes.c_char_p * len(options))(*map(str.encode, options))
        if self.library.nvrtcCompileProgram(program, len(options), words):
            sys.exit(self.read(program, "ProgramLog").rstrip(b"\0").decode())
        names = []
        for expression in expressions:
            name = ctypes.c_char_p()
            self.call("nvrtcGetLoweredName", program, expression, ctypes.byref(name))
            names.append((name.value or b"").decode())
        code = self.read(program, "CUBIN" if architecture.startswith("sm_") else "PTX")
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return code, names


def header(images: dict[str, tuple[bytes, list[str]]]) -> str:
    """The C++ header: `kernel_names`, in the order of NAMES, and `images`."""
    names = next(iter(images.values()))[1]
    if any(each != names for _, each in images.values()):
        sys.exit(
            "expected kernels of the same names for all architectures; received different ones."
        )
    lines = ["// Made by kernels.py."]
    for architecture, (code, _) in images.items():
        data = ",".join(map(str, code))
        lines.append(
            f"alignas(64) static const unsigned char code_{architecture}[] = {{{data}}};"
        )
    quoted = ", ".join(f'"{name}"' for name in names)
    lines.append(f"static const char* const kernel_names[] = {{{quoted}}};")
    rows = []
    for architecture in images:
        kind, capability = architecture.split("_")
        rows.append(
            f"{{{capability}, {'true' if kind == 'compute' else 'false'}, code_{architecture}}}"
        )
    lines.append("struct Image { int capability; bool text; const void* code; };")
    lines.append(f"static const Image images[] = {{{', '.join(rows)}}};")
    return "\n".join(lines) + "\n"


def main(folder_of_kernels: Path, target: Path) -> None:
    """Compile for all architectures."""
    source = device_part(
        *(
            (folder_of_kernels / f"cuda_kernels.{end}").read_text()
            for end in ("cu", "h")
        )
    )
    compiler = Compiler()
    target.write_text(
        header({each: compiler.compiled(source, each) for each in ARCHITECTURES})
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
