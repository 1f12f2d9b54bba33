"""The load of GPUs from NVML; missing values are None and do not affect other devices."""

from fake_nvml import GIB, GPU_IS_LOST, NOT_SUPPORTED, cards, mixed
from scalestudy.hardware.devices import GpuLoad, Load


def test_a_gpu_tells_how_busy_it_is_how_full_and_what_it_draws(nvml):
    (card,) = cards(1, busy=70, used=3 * GIB, power=250_500, energy=1_234_567)
    nvml(card)
    assert GpuLoad(["GPU-a0"]).look() == [Load(70.0, 3 * GIB, 250.5, 1234.567, 80 * GIB, 35.0)]


def test_unlike_devices_answer_each_for_itself_in_the_order_of_their_names(nvml):
    nvml(*mixed())
    found = GpuLoad(["GPU-d3", "MIG-2", "GPU-a0", "GPU-none", "GPU-c2"]).look()
    lost, part, volta, unknown, ada = found
    assert lost == unknown == Load()
    assert part == Load(memory=GIB, total=40 * GIB)  # of an instance NVML reports nothing else
    assert (volta.busy, volta.power, volta.energy) == (0.0, 300.0, None)
    assert (ada.busy, ada.energy) == (20.0, 0.0)


def test_a_device_that_is_lost_later_goes_blank_and_the_others_go_on(nvml):
    one, two = cards(2)
    nvml(one, two)
    load = GpuLoad(["GPU-a0", "GPU-b1"])
    one.fails, two.fails = {"*": GPU_IS_LOST}, {"nvmlDeviceGetPowerUsage": NOT_SUPPORTED}
    assert load.look() == [Load(), Load(10.0, GIB, None, 0.0, 80 * GIB, 5.0)]


def test_without_a_driver_or_names_there_is_nothing_to_tell(nvml):
    nvml(driver=None)
    assert GpuLoad(["GPU-a0"]).look() == [Load()] and GpuLoad([]).look() == []


def test_a_handle_is_taken_once(nvml):
    fake = nvml(*cards(1))
    load = GpuLoad(["GPU-a0"])
    load.look()
    fake.asked.clear()
    load.look()
    assert [name for name, _ in fake.asked] == [
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetTotalEnergyConsumption",
    ]
