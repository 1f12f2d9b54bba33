"""Types of the functions that compute and apply gradients."""

from collections.abc import Callable
from typing import Any

from scalestudy.data.samples import Slice

Gradients = list[Any]
Gradient = Callable[[Slice], tuple[Gradients, Any]]
"""slice -> gradients of (sum of its losses / total), and the sum of its losses."""
Update = Callable[[Gradients], None]
