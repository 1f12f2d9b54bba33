"""A source that is no file: opening it could wait for ever."""

import os
import socket
from pathlib import Path

import pytest

from scalestudy.data.locate import find_source
from scalestudy.errors import UserError


@pytest.mark.parametrize("name", ["pipe.npz", "pipe"])
def test_a_named_pipe_is_refused_and_not_opened(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match="which is a named pipe"):
        find_source(name, base=tmp_path, image_size=None, seed=0)


def test_a_device_is_refused_behind_whatever_name(tmp_path):
    (tmp_path / "zeros.npz").symlink_to("/dev/zero")
    with pytest.raises(UserError, match="which is a device"):
        find_source("zeros.npz", base=tmp_path, image_size=None, seed=0)


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path may be no longer than 107 bytes
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s.npz")
        with pytest.raises(UserError, match="which is a socket"):
            find_source(Path("s.npz"), base=tmp_path, image_size=None, seed=0)
