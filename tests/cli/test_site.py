import shutil
from pathlib import Path

import pytest

from scalestudy.launch.queue.site import find_site

SINFO = "gpu*|up|1-00:00:00|40|48|180000|gpu:v100:2"


@pytest.fixture(autouse=True)
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's site profiles, on a machine without Slurm."""
    (tmp_path / "bin").mkdir()
    for name in ("env", "bash", "cat", "echo", "sleep"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "scalestudy" / "sites"


def client(folder: Path, name: str, body: str) -> None:
    file = folder / "bin" / name
    file.write_text(f"#!/usr/bin/env bash\n{body}\n")
    file.chmod(0o755)


def test_init_writes_what_slurm_says_under_the_clusters_name(call, sites, tmp_path):
    client(tmp_path, "sinfo", f"echo '{SINFO}'")
    client(tmp_path, "scontrol", "echo 'ClusterName = big'")
    client(tmp_path, "sacctmgr", "echo research")
    code, text, _ = call("site", "init")
    assert code == 0
    assert "scalestudy check big" in text
    site = find_site("big", Path())
    assert (site.partition, site.account, site.gpus_per_node, site.cpus_per_node) == (
        "gpu",
        "research",
        2,
        48,
    )


def test_init_without_slurm_writes_a_file_to_fill_in_and_says_so(call, sites):
    code, _, errors = call("site", "init", "mine")
    assert code == 0
    assert "Slurm" in errors
    assert find_site("mine", Path()).cpus_per_node == 1


def test_init_does_not_wait_for_a_slurm_that_is_silent(call, tmp_path, monkeypatch):
    monkeypatch.setenv("SCALESTUDY_SLURM_TIMEOUT", "0.2")
    client(tmp_path, "sinfo", "sleep 60")
    code, _, errors = call("site", "init", "--out", tmp_path / "s.toml")
    assert code == 0
    assert "Slurm" in errors
    assert find_site(str(tmp_path / "s.toml"), Path()).name == "s"


@pytest.mark.slow
def test_init_overwrites_only_when_forced(call, sites):
    call("site", "init", "mine")
    (sites / "mine.toml").write_text("cpus_per_node = 7")
    assert call("site", "init", "mine")[0] == 2
    assert find_site("mine", Path()).cpus_per_node == 7
    assert call("site", "init", "mine", "--force")[0] == 0


@pytest.mark.parametrize("name", ["../x", "a/b", "", "-x"])
def test_init_takes_no_name_that_is_no_files(call, sites, name):
    assert call("site", "init", "--", name)[0] == 2
    assert not sites.exists()


def test_list_shows_each_profile_also_one_that_is_not_right(call, sites):
    assert "scalestudy site init" in call("site", "list")[1]
    sites.mkdir(parents=True)
    (sites / "good.toml").write_text('cpus_per_node = 7\npartition = "gpu"\ngpus_per_node = 2')
    (sites / "bad.toml").write_text("cpus = 7")
    text = call("site", "list")[1]
    assert "good  gpu, 2 GPUs, 7 cores a node" in text
    assert "bad  invalid: `cpus` (bad.toml, line 1)" in text
