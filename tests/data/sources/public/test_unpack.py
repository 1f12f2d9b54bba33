"""Archives of others are unpacked into their folder, or refused without a file outside it."""

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from scalestudy.data.sources.public import unpack as module
from scalestudy.data.sources.public.unpack import unpack
from scalestudy.errors import UserError

BAD_NAMES = ("../out", "a/../../out", "/abs/out", "..", "a\\..\\out", "C:out")


@pytest.fixture
def folder(tmp_path) -> Path:
    """Where it is unpacked to; whatever lies beside it afterwards has escaped."""
    folder = tmp_path / "beside" / "folder"
    folder.mkdir(parents=True)
    return folder


def zipped(path: Path, entries: dict) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, content in entries.items():
            pack.writestr(name, content)
    return path


def tarred(path: Path, members, mode="w:gz") -> Path:
    with tarfile.open(path, mode) as pack:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                pack.addfile(member, io.BytesIO(content))
            else:
                member.type, member.linkname = content
                pack.addfile(member)
    return path


def below(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_unpacked(tmp_path, folder, mode):
    members = [
        ("./", (tarfile.DIRTYPE, "")),
        ("./a/x.png", b"12"),
        ("b/", (tarfile.DIRTYPE, "")),
        ("b/y", b""),
    ]
    unpack(tarred(tmp_path / "t", members, mode), folder)
    assert below(folder) == {"a/x.png": b"12", "b/y": b""}


def test_a_zip_is_unpacked(tmp_path, folder):
    unpack(zipped(tmp_path / "z", {"a/": b"", "a/x.png": b"12" * 9999, "y": b""}), folder)
    assert below(folder) == {"a/x.png": b"12" * 9999, "y": b""}


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("write", [zipped, tarred])
def test_names_that_lead_out_are_refused(tmp_path, folder, name, write):
    entries = {"good": b"1", name: b"2"}
    with pytest.raises(UserError, match="which leads out of the folder"):
        unpack(write(tmp_path / "archive", entries if write is zipped else entries.items()), folder)
    assert below(folder.parent) == {"folder/good": b"1"}
    assert not Path("/abs/out").exists()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.SYMTYPE, "a link to '/etc/passwd'"),
        (tarfile.LNKTYPE, "a link to '/etc/passwd'"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path, folder, kind, words):
    with pytest.raises(UserError, match=words):
        unpack(tarred(tmp_path / "t", [("x", (kind, "/etc/passwd"))]), folder)
    assert not os.path.lexists(folder / "x")


def test_a_link_to_write_through_is_refused_before_it_is_made(tmp_path, folder):
    members = [("d", (tarfile.SYMTYPE, "..")), ("d/out", b"2")]
    with pytest.raises(UserError, match=r"a link to '\.\.'"):
        unpack(tarred(tmp_path / "t", members), folder)
    assert below(folder.parent) == {}


@pytest.mark.parametrize(("kind", "words"), [(stat.S_IFLNK, "a link"), (stat.S_IFCHR, "no regular file")])
def test_links_and_devices_in_a_zip_are_refused(tmp_path, folder, kind, words):
    with zipfile.ZipFile(tmp_path / "z", "w") as pack:
        entry = zipfile.ZipInfo("x")
        entry.external_attr = (kind | 0o777) << 16
        pack.writestr(entry, "/etc/passwd")
    with pytest.raises(UserError, match=f"'x', {words}"):
        unpack(tmp_path / "z", folder)
    assert not os.path.lexists(folder / "x")


def test_more_than_the_disk_takes_is_refused_before_it_is_written(tmp_path, folder):
    content = b"\0" * 5_000_000
    for archive in (zipped(tmp_path / "z", {"big": content}), tarred(tmp_path / "t", [("big", content)])):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module.shutil, "disk_usage", lambda _: Free(1000))
            with pytest.raises(UserError, match=r"4\.77 MiB and more, for which there is no space"):
                unpack(archive, folder)
        assert below(folder) == {}


class Free:
    """As `shutil.disk_usage` answers."""

    def __init__(self, free: int) -> None:
        self.free = free


def test_a_zip_bomb_that_lies_about_its_size_is_stopped(tmp_path, folder):
    archive = zipped(tmp_path / "z", {"x": b"\0" * 100_000})
    lying = archive.read_bytes().replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    archive.write_bytes(lying)
    with pytest.raises(UserError):
        unpack(archive, folder)
    assert sum(len(content) for content in below(folder).values()) <= 10


def test_too_many_entries_are_refused(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    with pytest.raises(UserError, match="more than 3 entries"):
        unpack(zipped(tmp_path / "z", {str(i): b"" for i in range(4)}), folder)


def test_one_name_twice_is_refused(tmp_path, folder):
    with pytest.raises(UserError, match="'x' twice"):
        unpack(tarred(tmp_path / "t", [("x", b"1"), ("x", b"2")]), folder)
    assert below(folder) == {"x": b"1"}


def test_a_file_as_a_folder_is_refused(tmp_path, folder):
    with pytest.raises(UserError, match="as a file and as a folder"):
        unpack(tarred(tmp_path / "t", [("x", b"1"), ("x/y", b"2")]), folder)


@pytest.mark.parametrize("write", [zipped, tarred])
def test_a_damaged_archive_is_named(tmp_path, folder, write):
    entries = {"x": os.urandom(50_000)}
    archive = write(tmp_path / "archive", entries if write is zipped else entries.items())
    content = archive.read_bytes()
    archive.write_bytes(
        content[:20_000] + b"spoilt" + content[20_006:] if write is zipped else content[:20_000]
    )
    with pytest.raises(UserError, match="an archive that can be unpacked"):
        unpack(archive, folder)


def test_what_is_no_archive_is_named(tmp_path, folder):
    (tmp_path / "t").write_text("<html>")
    with pytest.raises(UserError, match="an archive that can be unpacked"):
        unpack(tmp_path / "t", folder)
