"""Variables that are neither trained nor averaged, which all workers have in common."""

from collections.abc import Sequence
from typing import Any

import torch


class SharedBuffers:
    """Variables that are neither trained nor averaged: all workers have those of the first.

    For workers in processes of their own, DistributedDataParallel broadcasts them before each step. This does
    the same for workers that a process computes one after another.
    """

    def __init__(self, variables: Sequence[Any]) -> None:
        self.variables = variables
        self._before: list[Any] = []
        self._first: list[Any] | None = None

    @torch.no_grad()
    def begin(self) -> None:
        """Begin a step."""
        self._before = [variable.value.clone() for variable in self.variables]
        self._first = None

    @torch.no_grad()
    def next_worker(self) -> None:
        """End the turn of a worker, and let the next one begin where the first began."""
        if self._first is None:
            self._first = [variable.value.clone() for variable in self.variables]
        for variable, value in zip(self.variables, self._before, strict=True):
            variable.value.copy_(value)

    @torch.no_grad()
    def end(self) -> None:
        """Keep the values of the first worker."""
        assert self._first is not None
        for variable, value in zip(self.variables, self._first, strict=True):
            variable.value.copy_(value)
