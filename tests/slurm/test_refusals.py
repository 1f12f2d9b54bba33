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
