"""The private folder is one that nobody else can access, wherever it is."""

import os
from pathlib import Path

import pytest

from scalestudy.util import private_folder as private
from scalestudy.util.errors import RunError
from scalestudy.util.private_folder import private_folder

NOBODY = 65534
as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can give a folder to another user"
)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The three possible places of the folder, by kind."""
    runtime, temporary, cache = (
        tmp_path / name for name in ("runtime", "temporary", "cache")
    )
    for folder in (runtime, temporary, cache):
        folder.mkdir(mode=0o700)
    temporary.chmod(0o1777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(private, "RUNTIME", tmp_path / "no-systemd")
    return {
        "runtime": runtime / "scalestudy",
        "temporary": temporary / f"scalestudy-{os.geteuid()}",
        "cache": cache / "scalestudy" / f"on-{os.uname().nodename}",
    }


def plant_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


def plant_open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def plant_file(path: Path) -> None:
    path.write_text("in the way")


def plant_foreign(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, NOBODY, NOBODY)


PLANTED = [
    plant_link,
    plant_open,
    plant_file,
    pytest.param(plant_foreign, marks=as_root),
]


def test_it_is_in_the_runtime_folder_and_opens_to_nobody_else(
    places: dict[str, Path],
) -> None:
    assert private_folder() == places["runtime"] == private_folder()
    assert places["runtime"].stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("plant", PLANTED)
def test_what_is_planted_in_the_shared_folder_is_passed_over(
    places, plant, monkeypatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    plant(places["temporary"])
    assert private_folder() == places["cache"]
    assert not (places["temporary"].parent / "elsewhere").is_dir() or not any(
        (places["temporary"].parent / "elsewhere").iterdir()
    )


@pytest.mark.parametrize("value", [None, "", "relative", "/nowhere/at/all"])
def test_a_runtime_folder_that_is_none_is_passed_over(
    places, value, monkeypatch
) -> None:
    monkeypatch.setenv("LOGNAME", "../somebody")  # the folder is named by user ID
    monkeypatch.delenv("XDG_RUNTIME_DIR") if value is None else monkeypatch.setenv(
        "XDG_RUNTIME_DIR", value
    )
    assert private_folder() == places["temporary"]


def test_folders_that_others_can_write_to_are_passed_over(
    places: dict[str, Path],
) -> None:
    places["runtime"].parent.chmod(0o770)
    assert private_folder() == places["temporary"]
    places["temporary"].parent.chmod(0o777)  # anyone can rename entries here
    assert private_folder() == places["cache"]


@as_root
def test_another_users_runtime_folder_is_passed_over(places: dict[str, Path]) -> None:
    os.chown(places["runtime"].parent, NOBODY, NOBODY)
    assert private_folder() == places["temporary"]


def test_where_everything_is_planted_it_says_what_and_what_to_do(
    places: dict[str, Path],
) -> None:
    for path in places.values():
        path.parent.mkdir(exist_ok=True)
        plant_open(path)
    with pytest.raises(
        RunError, match=r"scalestudy-\d+: open to others \(mode 0777\).*XDG_RUNTIME_DIR"
    ):
        private_folder()
