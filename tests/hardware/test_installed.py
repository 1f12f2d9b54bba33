"""The id of an environment, and libraries of CUDA modules that would shadow those of its packages."""

import sys

import pytest

from scalestudy.hardware.installed import (
    container_image,
    environment_id,
    environment_name,
    identify,
    library_path,
    package_libraries,
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
        for version in (
            "0.2.0",
            "0.2.1.dev3+g1a2b3c4",
            "0.2.1.dev12+g5d6e7f8.d20260102",
            "not a version",
        )
    ]
    assert made[1] == made[2]
    assert len(set(made)) == 3
    builds = [
        identify(SOME | {"jax": version}, {})
        for version in ("0.4.1+cpu", "0.4.1+cuda12")
    ]
    assert builds[0] != builds[1]


def test_this_environment_is_named_by_its_folder_and_keeps_its_id():
    assert environment_name({}) == sys.prefix
    assert environment_id() == environment_id()
    assert packages()["scalestudy"]


def test_inside_a_container_the_image_names_it():
    assert (
        container_image({"APPTAINER_CONTAINER": "/images/a b.sif"}) == "/images/a b.sif"
    )
    assert container_image({"PATH": "/bin"}) is None
    assert environment_name({"SINGULARITY_CONTAINER": "/i.sif"}) == "/i.sif"


@pytest.fixture
def module(tmp_path):
    """Return a function that creates a folder with these files."""

    def made(name, *files):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for file in files:
            (folder / file).touch()
        return str(folder)

    return made


@pytest.fixture
def own(module):
    files = {"nvidia/cudnn/lib": "libcudnn.so.9", "nvidia/nccl/lib": "libnccl.so.2"}
    return {file: module(name, file) for name, file in files.items()}


def path(own, *folders):
    return library_path({"LD_LIBRARY_PATH": ":".join(folders)}, own)


def test_only_folders_that_hold_a_library_of_the_packages_are_dropped(module, own):
    cuda, mpi = (
        module("cuda/lib64", "libcudnn.so.9", "libfoo.so"),
        module("mpi/lib", "libmpi.so.40"),
    )
    older = module(
        "cudnn8/lib", "libcudnn.so.8"
    )  # another file name, which cannot replace the package's
    assert path(own, mpi, cuda, "/no/such", older) == (
        f"{mpi}:/no/such:{older}",
        [cuda],
    )


def test_nothing_changes_where_nothing_shadows(module, own):
    mpi = module("mpi/lib", "libmpi.so.40")
    for folders in (
        [],
        [mpi],
        [own["libnccl.so.2"]],
        [own["libnccl.so.2"], module("nccl", "libnccl.so.2")],
    ):
        assert path(own, *folders) == (":".join(folders), [])


def test_a_path_of_modules_alone_is_unset(module, own):
    found = path(own, module("nccl", "libnccl.so.2"))
    assert found.value == "" and len(found.dropped) == 1
    assert found.applied({"LD_LIBRARY_PATH": "x", "A": "1"}) == {"A": "1"}


def test_a_folder_with_the_drivers_library_stays(module, own):
    driver = module("nvidia/lib64", "libcuda.so.1", "libnccl.so.2")
    assert path(own, driver) == (driver, [])


def test_the_libraries_of_the_packages_are_those_of_this_python(tmp_path, monkeypatch):
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcublas.so.12").touch()
    (tmp_path / "nvidia" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    package_libraries.cache_clear()
    try:
        assert package_libraries()["libcublas.so.12"] == str(folder)
    finally:
        package_libraries.cache_clear()
