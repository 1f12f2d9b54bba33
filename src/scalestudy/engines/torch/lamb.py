"""LAMB in PyTorch's `_foreach` kernels; `torch.optim` has none."""

from typing import Any

import torch


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962): Adam with a rate for each weight, by its norm and its step's.

    It never waits for the device. A step whose gradients are not finite (see `torch.amp.GradScaler`) changes
    nothing.
    """

    _step_supports_amp_scaling = True  # GradScaler then leaves `found_inf` on the device

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-7,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the parameters by their gradients."""
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if parameters:
                self._update(group, parameters)

    def _update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        gradients = [parameter.grad for parameter in parameters]
        states = [self.state[parameter] for parameter in parameters]
        for state, parameter in zip(states, parameters, strict=True):
            if not state:
                state["step"] = torch.zeros((), device=parameter.device)
                state["exp_avg"], state["exp_avg_sq"] = (
                    torch.zeros_like(parameter),
                    torch.zeros_like(parameter),
                )
        steps, means, squares = (
            [state[key] for state in states] for key in ("step", "exp_avg", "exp_avg_sq")
        )
        goes, (first, second) = torch.ones_like(steps[0]), group["betas"]
        inverse, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        if found is not None:
            goes -= found
            gradients = [torch.where(found > 0, 0, gradient) for gradient in gradients]
        if inverse is not None:
            gradients = list(torch._foreach_div(gradients, inverse))
        torch._foreach_add_(steps, [goes] * len(steps))  # a tensor alone would be read
        for averages, beta, values in (
            (means, first, gradients),
            (squares, second, torch._foreach_mul(gradients, gradients)),
        ):
            torch._foreach_mul_(averages, 1 - goes * (1 - beta))
            torch._foreach_add_(averages, torch._foreach_mul(values, 1 - beta))
        step = torch.clamp(steps[0], min=1)
        changes = torch._foreach_sqrt(torch._foreach_div(squares, 1 - second**step))
        torch._foreach_add_(changes, group["eps"])
        changes = torch._foreach_div(torch._foreach_div(means, 1 - first**step), changes)
        if group["weight_decay"]:
            torch._foreach_add_(changes, parameters, alpha=group["weight_decay"])
        sizes, lengths = (torch.stack(torch._foreach_norm(values)) for values in (parameters, changes))
        ratios = torch.where((sizes > 0) & (lengths > 0), sizes / lengths, 1) * (goes * group["lr"])
        torch._foreach_mul_(changes, ratios.unbind())
        torch._foreach_sub_(parameters, changes)
