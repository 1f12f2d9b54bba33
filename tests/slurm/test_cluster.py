"""The cluster itself: properties on which other tests rely."""

import subprocess

import pytest


def test_every_node_has_its_own_name_address_and_tmp(cluster):
    script = 'touch /tmp/mine-$SLURMD_NODENAME; echo "$(hostname) $(hostname -I)" $(ls /tmp | grep mine)'
    lines = cluster.run("srun", "-N4", "bash", "-c", script).stdout.splitlines()
    hosts = (cluster.root / "hosts").read_text()
    for line in lines:
        name, address, own = line.split()
        assert own == f"mine-{name}"
        assert f"{address} {name}\n" in hosts
    assert sorted(line.split()[0] for line in lines) == cluster.nodes


def test_gpus_are_counted_and_bound(cluster):
    out = cluster.run("srun", "-N2", "--quiet", "--gres=gpu:2", "printenv", "CUDA_VISIBLE_DEVICES").stdout
    assert out.split() == ["0,1", "0,1"]


def test_a_job_is_signalled_before_its_time_limit(cluster):
    folder = cluster.folder("signal")
    script = (
        f"trap 'touch {folder}/signalled; exit 0' USR1\ntouch {folder}/started\nwhile :; do sleep 0.2; done\n"
    )
    job = cluster.sbatch("--time=1", "--signal=B:USR1@55", script=script)
    cluster.wait_for(lambda: cluster.states(job) == ["COMPLETED"], "the signal")
    assert (folder / "signalled").exists()


def test_a_stopped_controller_answers_nobody_until_it_is_started_again(cluster):
    cluster.stop_controller()
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            cluster.run("squeue", timeout=2)
    finally:
        cluster.start_controller()
    cluster.run("squeue", timeout=300)


def test_accounting_knows_jobs_and_refuses_unknown_accounts(cluster):
    job = cluster.sbatch(script="true")
    cluster.wait_for(
        lambda: "COMPLETED" in cluster.run("sacct", "-nXj", job, "-o", "state").stdout, "accounting"
    )
    refused = cluster.run("sbatch", "-A", "nonsense", "--wrap=true", check=False)
    assert refused.returncode == 1 and "Invalid account" in refused.stdout


def test_fourteen_nodes_come_up_without_accounting(big_cluster):
    assert len(big_cluster.run("srun", "-N14", "hostname").stdout.split()) == 14
    assert "disabled" in big_cluster.run("sacct", check=False).stdout
