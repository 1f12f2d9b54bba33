"""Libraries of CUDA modules that would be loaded instead of the packages' own."""

import pytest

from scalestudy.hardware.installed import library_path, package_libraries


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


def path(own, *folders, in_use=()):
    return library_path({"LD_LIBRARY_PATH": ":".join(folders)}, own, in_use)


def test_only_folders_that_hold_a_library_of_the_packages_are_dropped(module, own):
    cuda, mpi = module("cuda/lib64", "libcudnn.so.9", "libfoo.so"), module("mpi/lib", "libmpi.so.40")
    older = module("cudnn8/lib", "libcudnn.so.8")  # another file name, which cannot replace the package's
    assert path(own, mpi, cuda, "/no/such", older) == (f"{mpi}:/no/such:{older}", [cuda])


def test_nothing_changes_where_nothing_shadows(module, own):
    mpi = module("mpi/lib", "libmpi.so.40")
    for folders in ([], [mpi], [own["libnccl.so.2"]], [own["libnccl.so.2"], module("nccl", "libnccl.so.2")]):
        assert path(own, *folders) == (":".join(folders), [])


def test_a_path_of_modules_alone_is_unset(module, own):
    found = path(own, module("nccl", "libnccl.so.2"))
    assert found.value == "" and len(found.dropped) == 1
    assert found.applied({"LD_LIBRARY_PATH": "x", "A": "1"}) == {"A": "1"}


def test_a_folder_that_python_itself_was_loaded_from_stays_behind_the_packages(module, own):
    view = module("view/lib", "libpython3.11.so.1.0", "libcudnn.so.9", "libnccl.so.2")
    found = path(own, view, in_use={view})
    assert found == (f"{own['libcudnn.so.9']}:{own['libnccl.so.2']}:{view}", [view])
    assert path(own, *found.value.split(":"), in_use={view}).dropped == []  # a process restarts only once


def test_a_folder_with_the_drivers_library_stays_behind_the_packages(module, own):
    driver = module("nvidia/lib64", "libcuda.so.1", "libnccl.so.2")
    assert path(own, driver) == (f"{own['libnccl.so.2']}:{driver}", [driver])


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
