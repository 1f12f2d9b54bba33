"""The generated site profile: complete, valid, and filled in from Slurm's answers."""

import re
import tomllib

import pytest

from scalestudy.launch.queue.site_init import propose_values, site_template
from scalestudy.launch.queue.site_profile import Container, Site, load_site
from scalestudy.launch.queue.slurm_output import gpu_kinds, parse_sinfo

DEBUG = "debug*|up|infinite|4|4|4000|gpu:h100:2\nshort|up|1:00|4|4|4000|gpu:h100:2\n"
"""Printed by Slurm 22.05.8."""
LARGE = """\
cpu*|up|1-00:00:00|900|96|250000|(null)
gpu|up|2-00:00:00|40|48|180000|gpu:v100:2(S:0-1)
gpu|up|2-00:00:00|12|64|500000|gpu:a100:4(S:0-3)
dev|up|30:00|2|48|180000|gpu:v100:2(S:0-1)
old|down|infinite|400|16|60000|gpu:k80:4
"""


def values(sinfo, accounts=()):
    return propose_values(parse_sinfo(sinfo), accounts)


def read(text, tmp_path) -> Site:
    path = tmp_path / "here.toml"
    path.write_text(text)
    return load_site(path)


def test_the_default_partition_is_taken_where_it_has_gpus():
    assert values(DEBUG) == {
        "partition": "debug",
        "gpus_per_node": 2,
        "cpus_per_node": 4,
    }


def test_else_the_one_with_most_nodes_with_gpus_and_the_kind_of_gpu_is_named_where_there_are_several():
    assert values(LARGE) == {
        "partition": "gpu",
        "gpus_per_node": 2,
        "cpus_per_node": 48,
        "gpu_request": "--gres=gpu:v100:{gpus}",
        "time_limit": "1-00:00:00",
    }


MIXED = "gpu*|up|1:00|4|8|4000|gpu:a100:2\ngpu*|up|1:00|3|8|4000|gpu:2\n"


def test_gpus_without_a_type_beside_typed_ones_are_a_kind_of_their_own():
    assert gpu_kinds(parse_sinfo(MIXED), "gpu") == {"a100": 4, "GPUs without a type": 3}
    assert values(MIXED)["gpu_request"] == "--gres=gpu:a100:{gpus}"


def test_without_gpus_the_default_partition_is_taken():
    text = "a|up|30:00|900|8|250000|(null)\nb*|up|8:00:00|2|96|250000|(null)\n"
    assert values(text)["partition"] == "b"
    assert values(text)["time_limit"] == "08:00:00"


def test_an_account_is_filled_in_where_there_is_one_to_choose():
    assert values(DEBUG, ["research", "research"])["account"] == "research"
    assert "account" not in values(DEBUG, ["one", "two"])


@pytest.mark.parametrize("sinfo", ["", DEBUG, LARGE])
def test_the_written_file_is_right_as_it_is(sinfo, tmp_path):
    site = read(site_template(values(sinfo)), tmp_path)
    assert site == Site(**({"name": "here", "cpus_per_node": 1} | values(sinfo)))


@pytest.mark.parametrize("sinfo", ["", LARGE])
def test_uncommented_it_is_still_read(sinfo, tmp_path):
    text = site_template(values(sinfo))
    opened = re.sub(r"(?m)^# (environment = .*)$", "", text)  # a container replaces it
    opened = re.sub(r"(?m)^# (\w+ = |\[container\])", r"\1", opened)
    table = tomllib.loads(opened)
    assert set(table) == set(Site.model_fields) - {"name", "environment"}
    assert set(table["container"]) == set(Container.model_fields)
    site = read(opened, tmp_path)
    assert site.container is not None
    assert site.launcher == "srun"


def test_every_key_and_the_whole_of_its_docstring_is_there():
    text = " ".join(
        line.removeprefix("#").strip() for line in site_template({}).splitlines()
    )
    for model in (Site, Container):
        for key, field in model.model_fields.items():
            if key not in ("name", "container"):
                assert f"{key} = " in text
            if key != "name":
                assert " ".join((field.description or "nothing said").split()) in text
