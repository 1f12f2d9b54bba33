"""The short name of an environment follows from what is in it; CUDA and MPI are found beside it."""

import stat
import sys

import pytest

from scalestudy.hardware import installed
from scalestudy.hardware.installed import (
    container_image,
    environment_id,
    environment_name,
    identify,
    packages,
)

SOME = {"keras": "3.15.1", "numpy": "2.4.6"}


def test_the_same_versions_have_the_same_id_in_any_order():
    assert identify(SOME, {}) == identify(dict(reversed(SOME.items())), {})
    assert len(identify(SOME, {})) == 10


def test_another_version_package_or_build_of_horovod_has_another():
    others = [
        identify(SOME | {"keras": "3.14.0"}, {}),
        identify(SOME | {"rich": "14"}, {}),
        identify(SOME, {"tensorflow": "ab"}),
    ]
    assert len({identify(SOME, {}), *others}) == 4


def test_another_release_of_ours_has_another_id_and_another_commit_has_not():
    made = [
        identify(SOME | {"scalestudy": version}, {})
        for version in ("0.2.0", "0.2.1.dev3+g1a2b3c4", "0.2.1.dev12+g5d6e7f8.d20260102", "not a version")
    ]
    assert made[1] == made[2]
    assert len(set(made)) == 3
    builds = [identify(SOME | {"jax": version}, {}) for version in ("0.4.1+cpu", "0.4.1+cuda12")]
    assert builds[0] != builds[1]


def test_this_environment_is_named_by_its_folder_and_keeps_its_id():
    assert environment_name({}) == sys.prefix
    assert environment_id() == environment_id()
    assert packages()["scalestudy"]


def test_inside_a_container_the_image_names_it():
    assert container_image({"APPTAINER_CONTAINER": "/images/a b.sif"}) == "/images/a b.sif"
    assert container_image({"CH_RUNNING": "Weird Al Yankovic"}) == "a Charliecloud image"
    assert container_image({"PATH": "/bin"}) is None
    assert environment_name({"SINGULARITY_CONTAINER": "/i.sif"}) == "/i.sif"


def test_cuda_is_the_variables_folder_or_nvccs(tmp_path):
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch()
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    assert installed.cuda_home({"EBROOTCUDA": "/sw/cuda", "PATH": str(nvcc.parent)}) == "/sw/cuda"
    assert installed.cuda_home({"PATH": str(nvcc.parent)}) == str(tmp_path / "cuda")
    assert installed.cuda_home({"PATH": str(tmp_path)}) is None


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
    assert installed.mpi_version() == expected.format(place=place)


def test_without_mpi_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed.mpi_version() is None
