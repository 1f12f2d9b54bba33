"""Which packages fit a node, by the output of nvidia-smi or the user's choice."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]


@pytest.fixture
def node(tmp_path):
    """Run a script on a node with GPUs of these capabilities, or with a driver that reports none."""

    def on(
        script, *capabilities, machine="x86_64", tells=True, listed=None, **variables
    ):
        lines = "\\n".join(capabilities)
        query = f"printf '{lines}\\n'" if tells and capabilities else "exit 2"
        listed = bool(capabilities) if listed is None else listed
        programs = {
            "nvidia-smi": f'case "$1" in -L) exit {int(not listed)};; *) {query};; esac',
            "uname": f"echo {machine}",
        }
        for name, text in programs.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        return subprocess.run(
            [str(ROOT / "environments" / script)],
            capture_output=True,
            text=True,
            check=False,
            env={
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "VENV": str(tmp_path / "venv"),
                **variables,
            },
        )

    return on


@pytest.mark.parametrize(
    ("capabilities", "device"),
    [
        ([], "cpu"),
        (["7.0"], "gpu-volta"),
        (["6.0"], "gpu-volta"),
        (["7.5"], "gpu"),
        (["9.0", "9.0"], "gpu"),
        (["12.0"], "gpu"),
        (["10.0", "7.0"], "gpu-volta"),
    ],
)
def test_the_oldest_gpu_of_a_node_decides(node, capabilities, device):
    assert node("device.sh", *capabilities).stdout.split() == [device]


def test_gpus_of_other_machines_are_left_out_aloud_or_refused(node, tmp_path):
    done = node("device.sh", "9.0", machine="aarch64")
    assert (
        done.stdout.split() == ["cpu"]
        and "package for aarch64 has no CUDA" in done.stderr
    )
    done = node("setup.sh", "9.0", machine="aarch64", DEVICE="gpu")
    assert done.returncode == 1 and "received aarch64" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_a_device_without_a_lock_is_refused(node):
    done = node("setup.sh", DEVICE="tpu")
    assert done.returncode == 1 and "received DEVICE=tpu" in done.stderr


def pins(device: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{device}.txt").read_text()
    assert "://" not in text.replace("https://github.com", "")
    return dict(re.findall(r"^([\w.-]+)==([\w.+-]+)", text, re.MULTILINE))


def test_the_lock_for_volta_differs_in_cudnn_alone():
    volta, other = pins("gpu-volta"), pins("gpu")
    assert volta.pop("nvidia-cudnn-cu12") in SpecifierSet(">=9.3,<9.11")
    assert other.pop("nvidia-cudnn-cu12") in SpecifierSet(">=9.11")
    assert volta == other
