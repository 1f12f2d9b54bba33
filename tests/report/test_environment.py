"""The environments of runs as the report lists them."""

from dataclasses import replace

import synthetic
from scalestudy.report.environment import environments


def listed(*ids):
    """Return the listed facts of runs in environments with these ids."""
    ranks = [
        synthetic.rank().model_copy(update={"environment_id": each, "environment_name": "/venvs/a"})
        for each in ids
    ]
    return dict(environments([replace(synthetic.run(), ranks=(rank,)) for rank in ranks]))


def test_an_environment_is_named_by_its_id_and_folder():
    assert listed("ab12")["Environment"] == "ab12 (/venvs/a)"


def test_runs_of_different_software_show_both():
    assert listed("ab12", "cd34", "ab12")["Environment"] == "ab12 (/venvs/a); cd34 (/venvs/a)"


def test_records_that_hold_no_id_list_none():
    assert "Environment" not in listed("", "")


def test_a_variable_is_named_once_with_all_its_values():
    ranks = tuple(
        synthetic.rank().model_copy(update={"environment": {"HOROVOD_RANK": str(rank), "HOROVOD_SIZE": "2"}})
        for rank in range(2)
    )
    facts = dict(environments([replace(synthetic.run(), ranks=ranks)]))
    assert facts["Variables"] == "HOROVOD_RANK=0 or 1, HOROVOD_SIZE=2"


def test_many_long_values_of_a_variable_are_counted():
    addresses = [f'{{"cluster": {{"worker": ["localhost:{port}"]}}}}' for port in range(27000, 27005)]
    ranks = [synthetic.rank().model_copy(update={"environment": {"TF_CONFIG": each}}) for each in addresses]
    variables = dict(environments([replace(synthetic.run(), ranks=ranks)]))["Variables"]
    assert "5" in variables and "localhost" not in variables
    one = dict(environments([replace(synthetic.run(), ranks=ranks[:1])]))["Variables"]
    assert one == f"TF_CONFIG={addresses[0]}"


def test_a_build_is_told_in_words():
    rank = synthetic.rank().model_copy(
        update={
            "build": {"horovod": {"gloo": True, "is_cuda_build": False, "mpi": False, "controller": "gloo"}}
        }
    )
    facts = dict(environments([replace(synthetic.run(), ranks=(rank,))]))
    assert facts["Build: horovod"] == "gloo, no cuda build, no mpi, controller gloo"
