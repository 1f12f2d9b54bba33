"""The ID of an environment follows from its contents; CUDA and MPI are found beside it."""

import sys

from scalestudy.hardware.installed import (
    container_image,
    environment_id,
    environment_name,
    identify,
    packages,
)

SOME = {"keras": "3.15.1", "numpy": "2.4.6"}


def test_the_same_versions_have_the_same_id_in_any_order():
    assert identify(SOME, {}) == identify(dict(reversed(SOME.items())), {})
    assert len(identify(SOME, {})) == 10


def test_another_version_package_or_build_of_horovod_has_another():
    others = [
        identify(SOME | {"keras": "3.14.0"}, {}),
        identify(SOME | {"rich": "14"}, {}),
        identify(SOME, {"tensorflow": "ab"}),
    ]
    assert len({identify(SOME, {}), *others}) == 4


def test_another_release_of_ours_has_another_id_and_another_commit_has_not():
    made = [
        identify(SOME | {"scalestudy": version}, {})
        for version in ("0.2.0", "0.2.1.dev3+g1a2b3c4", "0.2.1.dev12+g5d6e7f8.d20260102", "not a version")
    ]
    assert made[1] == made[2]
    assert len(set(made)) == 3
    builds = [identify(SOME | {"jax": version}, {}) for version in ("0.4.1+cpu", "0.4.1+cuda12")]
    assert builds[0] != builds[1]


def test_this_environment_is_named_by_its_folder_and_keeps_its_id():
    assert environment_name({}) == sys.prefix
    assert environment_id() == environment_id()
    assert packages()["scalestudy"]


def test_inside_a_container_the_image_names_it():
    assert container_image({"APPTAINER_CONTAINER": "/images/a b.sif"}) == "/images/a b.sif"
    assert container_image({"CH_RUNNING": "Weird Al Yankovic"}) == "a Charliecloud image"
    assert container_image({"PATH": "/bin"}) is None
    assert environment_name({"SINGULARITY_CONTAINER": "/i.sif"}) == "/i.sif"
