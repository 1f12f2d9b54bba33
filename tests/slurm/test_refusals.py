"""Requests that a cluster does not grant are refused at submission, by name, and leave nothing behind."""

import pytest

from studies import results_of, write_site, write_study

UNAVAILABLE = "requested node configuration is not available"


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"partition": "nonsense"}, "partition"),
        ({"account": "nonsense"}, "account"),
        ({"qos": "nonsense"}, "qos"),
        ({"constraint": "nonsense"}, "feature"),
        ({"gpus_per_node": 4}, UNAVAILABLE),
        ({"partition": "short"}, "time limit"),
    ],
)
def test_what_slurm_refuses_is_named(cluster, keys, named):
    folder = cluster.folder("refused")
    write_site(folder, **{"tasks_per_node": 4} | keys)
    study = write_study(cluster, folder, workers=[4], strategy=["mirrored"])
    refused = cluster.scalestudy("submit", study, check=False)
    assert refused.returncode == 2, refused.stdout
    assert named in " ".join(refused.stdout.lower().split())
    assert "Traceback" not in refused.stdout
    assert not results_of(study).exists()


@pytest.mark.parametrize(
    ("request_", "asked"),
    [
        ("--gpus-per-node=h100:{gpus}", "--gpus-per-node=h100:2"),
        ("--gpus-per-task={gpus}", "--gpus-per-task=2"),  # for mirrored: one process with two devices
    ],
)
def test_gpus_that_are_there_are_granted(cluster, request_, asked):
    folder = cluster.folder("gpus")
    write_site(folder, gpus_per_node=2, gpu_request=request_, exclusive=False)
    script = cluster.run_quietly("submit", write_study(cluster, folder, workers=[2]), "--dry-run")
    assert f"#SBATCH {asked}\n" in script
    lines = [line for line in script.splitlines(keepends=True) if line.startswith("#SBATCH")]
    directives = "".join(line for line in lines if "--output" not in line)  # its folder does not exist
    job = cluster.sbatch(script=f'{directives}echo "$CUDA_VISIBLE_DEVICES" >{folder}/gpus\n')
    cluster.wait_for(lambda: cluster.states(job) == ["COMPLETED"], "the job")
    assert (folder / "gpus").read_text() == "0,1\n"
