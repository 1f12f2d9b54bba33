import pytest
from sites import job, site

from scalestudy.errors import UserError
from scalestudy.launch.queue.layout import refuse_without_driver
from scalestudy.launch.queue.site import Container


def refuse(image, gpus=2, **keys):
    on = site(
        gpus_per_node=gpus, container=Container(**({"image": str(image), "runtime": "charliecloud"} | keys))
    )
    refuse_without_driver(on, [job("single", 1, on).layout])


def test_gpus_in_a_charliecloud_image_without_the_driver_are_refused_by_name(tmp_path):
    with pytest.raises(UserError, match="ch-fromhost --nvidia") as error:
        refuse(tmp_path)
    assert 'Where binds bring the driver in, set gpu = "none"' in str(error.value)  # taken below


@pytest.mark.parametrize("folder", ["usr/lib/x86_64-linux-gnu", "usr/local/lib", "lib64"])
def test_an_image_that_was_given_the_driver_is_taken(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "libcuda.so.1").touch()
    refuse(tmp_path)


def test_what_needs_no_driver_or_cannot_be_looked_into_is_taken(tmp_path):
    refuse(tmp_path, gpus=0)
    refuse(tmp_path, gpu="none")
    refuse(tmp_path, runtime="apptainer")
    refuse("$IMAGES/a.sqfs")
