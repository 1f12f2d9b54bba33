"""Where NCCL, CUDA, MPI and the compiler are found."""

import stat

import pytest

from scalestudy.hardware import libraries


def test_nccl_is_found_by_its_variables_and_each_file_once(tmp_path):
    library = tmp_path / "nccl" / "lib" / "libnccl.so.2.21.5"
    library.parent.mkdir(parents=True)
    library.touch()
    (library.parent / "libnccl.so.2").symlink_to(library.name)
    found = libraries.nccl_libraries(
        {"NCCL_HOME": str(tmp_path / "nccl"), "LD_LIBRARY_PATH": f":{library.parent}"}
    )
    assert found.count(str(library)) == 1
    assert not any(name.endswith(".so.2") for name in found)


def test_cuda_is_the_variables_folder_or_nvccs(tmp_path):
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch()
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    assert libraries.cuda_home({"EBROOTCUDA": "/sw/cuda", "PATH": str(nvcc.parent)}) == "/sw/cuda"
    assert libraries.cuda_home({"PATH": str(nvcc.parent)}) == str(tmp_path / "cuda")
    assert libraries.cuda_home({"PATH": str(tmp_path)}) is None


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 'mpirun (Open MPI) 4.1.4'; echo more", "mpirun (Open MPI) 4.1.4 ({place})"),
        ("exit 3", "{place}"),
    ],
)
def test_mpi_tells_its_first_line_or_only_its_place(tmp_path, monkeypatch, script, expected):
    place = tmp_path / "mpirun"
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert libraries.mpi_version() == expected.format(place=place)


def test_without_mpi_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert libraries.mpi_version() is None
