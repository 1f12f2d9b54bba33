from scalestudy.launch.local import reserve
from scalestudy.launch.local.reserve import cores_near


def test_each_gpu_has_cores_near_it():
    with cores_near(range(4000, 4008), [range(4004, 4008), range(4000, 4004)], 2) as (cores, alone):
        assert (cores, alone) == ([4004, 4005, 4000, 4001], True)


def test_where_another_study_has_the_near_ones_a_gpu_takes_others_and_leaves_the_next_gpus_alone():
    near = [range(4104, 4107), range(4100, 4104)]
    with reserve.cores([4104, 4105], 2), cores_near(range(4100, 4107), near, 2) as (cores, alone):
        assert (cores, alone) == ([4106, 4102, 4100, 4101], True)


def test_a_gpu_without_enough_free_cores_shares_them():
    near = [[4200, 4201]]
    with reserve.cores([4200], 1), cores_near([4200, 4201], near, 2) as (cores, alone):
        assert (sorted(cores), alone) == ([4200, 4201], False)
