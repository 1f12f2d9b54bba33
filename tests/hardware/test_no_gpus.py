"""Why GPUs cannot be used, from NVML's answers and the framework's messages."""

import pytest

from fake_nvml import NO_PERMISSION, Card, cards
from scalestudy.engines.tensorflow.installation import explain_missing_gpus
from scalestudy.hardware.no_gpus import Build, why_not_listed, why_unseen

CUDA = Build("TensorFlow 2.21.0", "12.5.1")
# Messages of TensorFlow 2.21 with CUDA 12.5.1 and stand-ins for the driver's libraries.
SMALL = "I0000 00:00:1.7 77 dso_loader.cc:133] Successfully opened dynamic library libcufft.so.11"
DRIVER = (
    "I0000 00:00:1.7 77 dso_loader.cc:144] Could not load dynamic library 'libcuda.so.1'; dlerror: "
    "libcuda.so.1: cannot open shared object file: No such file or directory"
)
MISSING = (
    "I0000 00:00:1.7 77 dso_loader.cc:144] Could not load dynamic library 'libcudnn.so.9'; dlerror: "
    "broken/libcudnn.so.9: file too short; LD_LIBRARY_PATH: cuda:broken"
)
OPENS = (
    "W0000 00:00:1.7 77 gpu_device.cc:2365] Cannot dlopen some GPU libraries. Please make sure the "
    "missing libraries mentioned above are installed properly if you would like to use GPU."
)
STARTS = (
    "E0000 00:00:1.7 77 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: "
    "Failed call to cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver"
)


@pytest.mark.parametrize(
    ("variables", "words", "action"),
    [
        (
            {},
            "missing or cannot be used (NVML Shared Library Not Found)",
            "nvidia-smi lists GPUs",
        ),
        (
            {"APPTAINER_CONTAINER": "x.sif"},
            "the container has no NVIDIA driver",
            "--nv",
        ),
    ],
)
def test_without_nvml_the_driver_is_missing_here_or_in_the_container(
    nvml, variables, words, action
):
    nvml(driver=None)
    reason = why_unseen(variables)
    assert words in reason.words and action in reason.action


def test_gpus_that_may_not_be_opened_are_told_from_those_that_variables_hide(nvml):
    nvml(Card("GPU-x", fails={"*": NO_PERMISSION}))
    assert "this process may open no GPU" in why_unseen({}).words
    nvml(*cards(2))
    hidden = why_unseen({"CUDA_VISIBLE_DEVICES": "7"})
    assert (
        hidden.words == "CUDA_VISIBLE_DEVICES='7' shows none of the 2 GPUs of the node"
    )


@pytest.mark.parametrize(
    ("build", "words", "served", "expected"),
    [
        (Build("TensorFlow 2.21.0", None), [], 13000, "is built without CUDA"),
        (CUDA, [OPENS], 11040, "is too old: it serves CUDA 11.4"),
        (
            CUDA,
            [DRIVER, STARTS],
            12020,
            "the driver's own library does not load: Could not load",
        ),
        (CUDA, [SMALL, MISSING, OPENS], 12020, "broken/libcudnn.so.9: file too short"),
        (CUDA, [SMALL, STARTS], 12020, "CUDA does not start: failed call to cuInit"),
        (
            CUDA,
            [SMALL, OPENS],
            12020,
            "its own words are: Cannot dlopen some GPU libraries",
        ),
        (CUDA, ["hello"], 12020, "does not say why"),
    ],
)
def test_a_framework_lists_none_by_its_build_by_the_driver_or_in_its_own_words(
    nvml, build, words, served, expected
):
    nvml(cuda=served)
    reason = why_not_listed(build, explain_missing_gpus(words))
    assert expected in reason.words and reason.action


def test_a_gpu_that_tensorflow_finds_too_small_is_not_mended_by_an_installation(nvml):
    nvml(cuda=12080)
    small = (
        "I0000 00:00:1.7 77 gpu_device.cc:2499] Ignoring visible gpu device (device: 1, name: NVIDIA "
        "GeForce GT 1030) with core count: 3. The minimum required count is 8. You can adjust this "
        "requirement with the env var TF_MIN_GPU_MULTIPROCESSOR_COUNT."
    )
    reason = why_not_listed(CUDA, explain_missing_gpus([small]))
    assert "GT 1030" in reason.words and "minimum required count" in reason.words
    assert "CUDA_VISIBLE_DEVICES" in reason.action and "nstall" not in reason.action


@pytest.mark.parametrize(
    ("name", "extra"),
    [("TensorFlow 2.21.0", "'.[gpu]'"), ("PyTorch 2.13.0", "'.[torch]'")],
)
def test_the_advice_names_the_extra_of_the_engine(name, extra):
    assert extra in why_not_listed(Build(name, None), None).action
