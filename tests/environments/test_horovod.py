"""The build recipe of Horovod with NCCL, as far as it can be tested without building."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scalestudy.hardware.installed import packages

ENVIRONMENTS = Path(__file__).parents[2] / "environments"


def load(name):
    sys.path.insert(0, str(ENVIRONMENTS / "horovod"))
    try:
        spec = importlib.util.spec_from_file_location(
            name, ENVIRONMENTS / "horovod" / f"{name}.py"
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
        sys.modules.pop("packages", None)
    return module


@pytest.fixture
def installed(tmp_path):
    """A folder for PYTHONPATH with the files of the CUDA and NCCL packages that a build needs."""
    place = tmp_path / "packages"
    wanted = [
        *load("packages").NEEDED.values(),
        ("nccl", "lib/libnccl.so.2"),
        ("nccl", "include/nccl.h"),
    ]
    for name, file in wanted:
        (place / "nvidia" / name / file).parent.mkdir(parents=True, exist_ok=True)
        (place / "nvidia" / name / file).touch()
    (place / "nvidia" / "__init__.py").touch()
    lines = "#define NCCL_MAJOR 2\n#define NCCL_MINOR 27\n#define NCCL_PATCH 5\n"
    (place / "nvidia" / "nccl" / "include" / "nccl.h").write_text(lines)
    information = place / "nvidia_cuda_runtime_cu12-12.9.79.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Name: nvidia-cuda-runtime-cu12\nVersion: 12.9.79\n"
    )
    return place


@pytest.fixture
def asked(installed, monkeypatch, capsys):
    """Return what packages.py prints about them."""
    monkeypatch.syspath_prepend(str(installed))

    def ask(**variables):
        for name in ("TARGET", "NCCL_HOME", "HOROVOD_NCCL_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        load("packages").main()
        lines = (line.partition("=") for line in capsys.readouterr().out.splitlines())
        return {name: value.strip("'") for name, _, value in lines}

    return ask


def test_cuda_and_nccl_are_found_with_their_versions_and_a_run_path_that_moves_along(
    installed, asked
):
    found = asked()
    assert (found["cuda_version"], found["nccl_version"]) == ("12.9.79", "2.27.5")
    assert found["run_path"] == "$ORIGIN/../../nvidia/nccl/lib"
    assert found["nccl_library"] == str(
        installed / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    )


def test_a_horovod_elsewhere_or_another_nccl_has_a_run_path_that_stands(
    installed, asked, tmp_path
):
    assert asked(TARGET="/elsewhere")["run_path"] == str(
        installed / "nvidia" / "nccl" / "lib"
    )
    other = tmp_path / "nccl"
    (installed / "nvidia" / "nccl").rename(other)
    assert asked(NCCL_HOME=other)["run_path"] == str(other / "lib")
    with pytest.raises(SystemExit, match=f"received {tmp_path}\\."):
        asked(NCCL_HOME=tmp_path)


def test_packages_that_are_missing_are_named(installed, asked):
    (installed / "nvidia" / "cuda_cccl" / "include" / "nv" / "target").unlink()
    with pytest.raises(SystemExit, match=r"received none of nvidia-cuda-cccl-cu12\."):
        asked()


def test_nvcc_of_another_cuda_than_tensorflows_is_refused(installed, tmp_path):
    if not packages().keys() & {"tensorflow", "tensorflow-cpu"}:
        pytest.skip("no TensorFlow")
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(
        "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.48'\n"
    )
    nvcc.chmod(0o755)
    done = subprocess.run(
        [ENVIRONMENTS / "build-horovod.sh", sys.prefix],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(installed),
            "HOME": str(tmp_path),
            "HOROVOD_GPU_OPERATIONS": "NCCL",
            "HOROVOD_CUDA_HOME": str(tmp_path / "cuda"),
        },
    )
    assert done.returncode == 1
    assert (
        "expected nvcc of CUDA 12, TensorFlow's, in HOROVOD_CUDA_HOME; received 13.0"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("module", "told"),
    [
        (
            "raise ImportError('mpi_lib.so: undefined symbol: _Z1a')",
            "ImportError: mpi_lib.so: undefined",
        ),
        ("gloo_built = lambda: True; nccl_built = lambda: 0", "without ['nccl']"),
        ("gloo_built = nccl_built = lambda: 23203", None),
    ],
)
def test_a_library_that_does_not_load_or_lacks_nccl_is_told_with_the_loaders_words(
    tmp_path, module, told
):
    folder = tmp_path / "horovod" / "tensorflow"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").write_text(module)
    done = subprocess.run(
        [sys.executable, ENVIRONMENTS / "horovod" / "loads.py", "gloo", "nccl"],
        env={"PYTHONPATH": str(tmp_path), "TARGET": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (told is not None)
    assert (told or "") in done.stderr


def test_a_change_that_does_not_fit_the_source_ends_the_build():
    changed = load("patch").changed
    assert changed("a\nb\n", "^b$", "c", 1, "file") == "a\nc\n"
    with pytest.raises(
        SystemExit, match=r"expected '\^b\$' 1 times in file; received 0"
    ):
        changed("a\n", "^b$", "c", 1, "file")


SOURCE = """#include "cuda_kernels.h"
namespace horovod {
__global__ void copy_k(BatchedD2DParams params) {
  a();
}
void OneCudaImpl(int a,
                 int b) {
  copy_k<<<1, 2>>>(a);
}
void TwoCudaImpl() {
}
void ThreeCudaImpl() {
}
}
"""
HEADER = "#include <x>\n#define BATCHED_D2D_CAPACITY 160\nstruct BatchedD2DParams {\n  int a;\n};\nvoid f();\n"


def test_what_runs_on_the_host_is_cut_off_the_kernels():
    kernels = load("kernels")
    text = kernels.device_part(SOURCE, HEADER)
    assert (
        "copy_k(BatchedD2DParams params)" in text and "struct BatchedD2DParams" in text
    )
    assert "<<<" not in text and "#include" not in text and "void f" not in text
    with pytest.raises(SystemExit, match="with 3 functions; received 2"):
        kernels.device_part(
            SOURCE.replace("void OneCudaImpl", "int OneCudaImpl"), HEADER
        )


def test_the_images_stand_with_their_capability_and_the_names_of_the_kernels():
    images = {"sm_70": (b"\x01\x02", ["_Z1a"]), "compute_90": (b"P", ["_Z1a"])}
    text = load("kernels").header(images)
    assert "code_sm_70[] = {1,2};" in text and 'kernel_names[] = {"_Z1a"};' in text
    assert "{70, false, code_sm_70}, {90, true, code_compute_90}" in text
    with pytest.raises(SystemExit, match="the same names"):
        load("kernels").header(images | {"sm_80": (b"", ["_Z1b"])})
