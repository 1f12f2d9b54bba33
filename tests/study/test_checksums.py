import subprocess
from hashlib import sha256

import pytest

from scalestudy.study.record_file import CHECKSUMS, read_checksums, write_checksums


def test_what_is_written_is_read_and_checked_by_sha256sum(tmp_path):
    (tmp_path / "ranks").mkdir()
    for name in ("result.json", "ranks/0.json"):
        (tmp_path / name).write_text(name)
    write_checksums(tmp_path, ["result.json", "ranks/0.json"])
    expected = {name: sha256(name.encode()).hexdigest() for name in ("ranks/0.json", "result.json")}
    assert read_checksums(tmp_path) == expected
    check = ["sha256sum", "--check", "--strict", "--status", CHECKSUMS]
    assert subprocess.call(check, cwd=tmp_path) == 0
    (tmp_path / "result.json").write_text("altered")
    assert subprocess.call(check, cwd=tmp_path) == 1


@pytest.mark.parametrize("text", ["noise", "0" * 64, "00  result.json\n", "\x00"])
def test_damaged_checksums_are_refused(tmp_path, text):
    (tmp_path / CHECKSUMS).write_text(text)
    with pytest.raises(ValueError, match="line 1 "):
        read_checksums(tmp_path)
