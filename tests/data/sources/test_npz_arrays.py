"""Arrays of an archive that is damaged or malicious."""

import os
import pickle
import struct
import zipfile

import numpy as np
import pytest

from scalestudy.data.sources import npz
from scalestudy.data.sources.npz import NpzArray
from scalestudy.util.errors import UserError

Y = np.array([0, 1, 0, 1])
X = np.arange(4 * 5 * 7, dtype=np.uint8).reshape(4, 5, 7)


@pytest.fixture
def archive(tmp_path):
    """Write an .npz file with raw members."""

    def archive(members, method=zipfile.ZIP_STORED):
        with zipfile.ZipFile(tmp_path / "set.npz", "w", method) as file:
            for name, data in members.items():
                file.writestr(name, data)
        return tmp_path / "set.npz"

    return archive


def npy(shape, descr="|u1", data=b"", fortran=False):
    header = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}"
    return claimed(header) + data


def claimed(header):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def refusal(path, name="x_train"):
    with pytest.raises(UserError) as refused:
        NpzArray(path, name)
    assert str(path) in refused.value.received
    return refused.value.received


@pytest.mark.parametrize("shape", [(10**12, 1024), (10**30,), (4, 5, 8), (-4, -35)])
@pytest.mark.parametrize("fortran", [False, True])
def test_a_header_that_claims_another_size_is_refused(archive, shape, fortran):
    path = archive({"x_train.npy": npy(shape, data=X.tobytes(), fortran=fortran)})
    with pytest.raises(UserError, match="x_train"):
        NpzArray(path, "x_train").values()


@pytest.mark.parametrize(
    "header",
    [
        "",
        "(" * 4000,
        "{" + "'a': 1," * 900 + "}",
        "{'descr': 'O9', 'shape': 1}",
        "\x00\xff",
        "__import__('os')",
    ],
)
def test_a_header_that_is_none_is_refused(archive, header):
    assert "x_train: " in refusal(archive({"x_train.npy": claimed(header)}))


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x09\x00", b"no array"])
def test_a_member_that_is_no_array_is_refused(archive, data):
    refusal(archive({"x_train.npy": data}))


def test_a_pickle_is_never_loaded(archive, tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    body = pickle.dumps(Harm())
    assert "Python objects" in refusal(archive({"x_train.npy": npy((1,), "|O", body)}))
    path = archive({"x_train.npy": body})
    refusal(path)
    assert not (tmp_path / "harm").exists()


def test_names_that_climb_out_of_the_archive_are_not_extracted(archive, ready, tmp_path):
    members = {"x_train.npy": npy((4, 5, 7), data=X.tobytes()), "y_train.npy": npy((4,), data=b"\0\1\0\1")}
    path = archive({"../../x_train.npy": b"harm", "/tmp/y_train.npy": b"harm", **members})
    prepared = ready(path)
    assert (prepared.inputs[..., 0] == X).all()
    assert prepared.left_out[0].names == ("../../x_train", "/tmp/y_train")


def test_an_array_that_the_memory_cannot_hold_is_refused(archive, monkeypatch):
    path = archive({"x.npy": npy((4, 35), data=bytes(140))})
    monkeypatch.setattr(npz, "memory_limit", lambda: 100)
    with pytest.raises(UserError, match="140 B"):
        NpzArray(path, "x").values()


def test_a_member_that_ends_early_or_is_changed_is_named(archive):
    path = archive({"x_train.npy": npy((4, 5, 7), data=X.tobytes())})
    raw = path.read_bytes()
    path.write_bytes(raw.replace(X.tobytes()[:20], bytes(20)))
    with pytest.raises(UserError, match="x_train: Bad CRC-32"):
        NpzArray(path, "x_train").values()


def test_fortran_order_gives_the_same_rows(archive):
    path = archive({"x.npy": npy((4, 5, 7), data=X.tobytes(order="F"), fortran=True)})
    assert (NpzArray(path, "x").values() == X).all()
