"""Gradients in buckets, which are summed during back-propagation."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.engine


class Sum:
    """A pending sum over equal workers."""

    def __init__(self, tensor, workers):
        self._tensor, self._workers = tensor, workers

    def wait(self):
        self._tensor.mul_(self._workers)


def gradients_of(buckets, begun, *, summed=True):
    """Three chained parameters and their gradients; `begun` records each sum and the gradients present."""
    from scalestudy.engines.torch.exchange import Gradients

    parameters = [torch.nn.Parameter(torch.full((2,), float(value))) for value in (2, 3, 5)]
    arrived = []
    for number, parameter in enumerate(parameters):
        parameter.register_post_accumulate_grad_hook(lambda _, number=number: arrived.append(number))

    def start_sum(flat):
        begun.append((flat.numel(), tuple(arrived)))
        return Sum(flat, 4)

    return parameters, Gradients(parameters, buckets, start_sum if summed else None)


def passed(gradients, parameters, last=True):
    first, second, third = parameters
    gradients.backward((third * torch.tanh(second * torch.tanh(first))).sum(), last=last)


def test_a_bucket_is_summed_before_gradients_of_earlier_layers_are_there():
    begun = []
    parameters, gradients = gradients_of([(2,), (0, 1)], begun)
    gradients.begin()
    passed(gradients, parameters)
    values = gradients.finish()
    assert [size for size, _ in begun] == [2, 4]
    assert begun[0][1] == (2,), "the first layers' gradients were there before the last layer's was summed"
    expected = torch.autograd.grad(
        (parameters[2] * torch.tanh(parameters[1] * torch.tanh(parameters[0]))).sum(), parameters
    )
    for value, once in zip(values, expected, strict=True):
        torch.testing.assert_close(value, 4 * once)


def test_buckets_are_summed_in_their_order_whatever_arrives_first():
    begun = []
    parameters, gradients = gradients_of([(0,), (1,), (2,)], begun)
    for _ in range(2):
        gradients.begin()
        passed(gradients, parameters)
        gradients.finish()
    assert [arrived[-1] for _, arrived in begun] == [0] * 6, "a bucket overtook another"


def test_passes_of_a_step_add_up_and_are_summed_once():
    begun = []
    parameters, gradients = gradients_of([(0, 1, 2)], begun)
    gradients.begin()
    passed(gradients, parameters, last=False)
    assert not begun
    passed(gradients, parameters)
    twice = [value.clone() for value in gradients.finish()]
    gradients.begin()
    passed(gradients, parameters)
    for value, both in zip(gradients.finish(), twice, strict=True):
        torch.testing.assert_close(both, 2 * value)
    assert len(begun) == 2


def test_what_no_loss_depends_on_is_zero_and_summed_too():
    begun = []
    parameters, gradients = gradients_of([(2,), (0, 1)], begun)
    gradients.begin()
    gradients.backward((parameters[1] * 7).sum(), last=True)
    values = gradients.finish()
    assert len(begun) == 2
    assert [value.tolist() for value in values] == [[0, 0], [28, 28], [0, 0]]


def test_a_lone_process_sums_nothing():
    begun = []
    parameters, gradients = gradients_of([(2,), (0, 1)], begun, summed=False)
    gradients.begin()
    gradients.backward((parameters[0] * 7).sum(), last=True)
    assert gradients.finish()[0].tolist() == [7, 7]
    assert not begun
