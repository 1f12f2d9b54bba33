"""Keras's convolutions and pooling without copies between layouts, and with the bias in the same kernel.

Keras copies channels-last images for PyTorch, which computes in both layouts: a view with channels first has
its `channels_last` memory format.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from keras import layers, ops
from torch.nn import functional

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
"""Memory format of a kernel by its number of axes; otherwise it is contiguous."""
CONVOLUTIONS: dict[type[layers.Layer], Callable[..., Any]] = {
    layers.Conv1D: functional.conv1d,
    layers.Conv2D: functional.conv2d,
    layers.Conv3D: functional.conv3d,
}
TRANSPOSED: dict[type[layers.Layer], Callable[..., Any]] = {
    layers.Conv1DTranspose: functional.conv_transpose1d,
    layers.Conv2DTranspose: functional.conv_transpose2d,
    layers.Conv3DTranspose: functional.conv_transpose3d,
}


def _transposed(layer: Any, x: Any) -> Any:
    kernel, padding = ops.convert_to_tensor(layer.kernel), (layer.padding, layer.output_padding)
    return ops.conv_transpose(x, kernel, layer.strides, *padding, "channels_first", layer.dilation_rate)


def _depthwise(layer: Any, x: Any) -> Any:
    kernel = ops.convert_to_tensor(layer.kernel)
    return ops.depthwise_conv(x, kernel, layer.strides, layer.padding, "channels_first", layer.dilation_rate)


def _separable(layer: Any, x: Any) -> Any:
    kernels = ops.convert_to_tensor(layer.depthwise_kernel), ops.convert_to_tensor(layer.pointwise_kernel)
    return ops.separable_conv(
        x, *kernels, layer.strides, layer.padding, "channels_first", layer.dilation_rate
    )


def _max_pool(layer: Any, x: Any) -> Any:
    return ops.max_pool(x, layer.pool_size, layer.strides, layer.padding, "channels_first")


def _mean_pool(layer: Any, x: Any) -> Any:
    return ops.average_pool(x, layer.pool_size, layer.strides, layer.padding, "channels_first")


OTHERS: dict[type[layers.Layer], Callable[[Any, Any], Any]] = {
    **dict.fromkeys(TRANSPOSED, _transposed),
    **dict.fromkeys((layers.DepthwiseConv1D, layers.DepthwiseConv2D), _depthwise),
    **dict.fromkeys((layers.SeparableConv1D, layers.SeparableConv2D), _separable),
    **dict.fromkeys((layers.MaxPooling1D, layers.MaxPooling2D, layers.MaxPooling3D), _max_pool),
    **dict.fromkeys((layers.AveragePooling1D, layers.AveragePooling2D, layers.AveragePooling3D), _mean_pool),
}
"""What a layer computes of inputs [B, C, ...], without its bias and activation."""


class InLayout:
    """A Keras layer that computes channels-last inputs as a view with channels first."""

    def call(self: Any, inputs: Any) -> Any:
        """Return what the layer computes of `inputs` (shape [B, ..., C])."""
        outputs = OTHERS[type(self).__bases__[1]](self, inputs.movedim(-1, 1)).movedim(1, -1)
        if getattr(self, "use_bias", False):
            outputs = outputs + ops.convert_to_tensor(self.bias)
        activation = getattr(self, "activation", None)
        return outputs if activation is None else activation(outputs)


class InOneKernel:
    """A Keras convolution that computes likewise, with the bias in the same kernel."""

    def call(self: Any, inputs: Any) -> Any:
        """Return what the layer computes of `inputs` (shape [B, ..., C])."""
        kernel = ops.convert_to_tensor(self.kernel)
        kernel = kernel.permute(-1, -2, *range(kernel.ndim - 2))
        bias = ops.convert_to_tensor(self.bias) if self.use_bias else None
        kind, x = type(self).__bases__[1], inputs.movedim(-1, 1)
        if kind in TRANSPOSED:
            outputs = TRANSPOSED[kind](x, kernel, bias, stride=self.strides)
        else:
            padding: Any = 0
            if self.padding == "same":
                x, padding = padded(x, kernel.shape[2:], self.strides, self.dilation_rate)
            outputs = CONVOLUTIONS[kind](
                x, kernel, bias, self.strides, padding, self.dilation_rate, self.groups
            )
        outputs = outputs.movedim(1, -1)
        return outputs if self.activation is None else self.activation(outputs)


def keep_layout(layer: Any) -> None:
    """Replace a convolution or pooling of Keras's own in place; leave other layers as they are."""
    kind = type(layer)
    if getattr(layer, "data_format", None) != "channels_last":
        return
    in_one = _is_whole(layer) if kind in TRANSPOSED else kind in CONVOLUTIONS
    if getattr(layer, "padding", None) not in ("valid", "same") or not (in_one or kind in OTHERS):
        return
    layer.__class__ = type(kind.__name__, (InOneKernel if in_one else InLayout, kind), {})
    if in_one:
        _lay_out(layer.kernel.value)


def padded(
    x: Any, size: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[Any, tuple[int, ...]]:
    """Return `x` [B, C, ...] and its padding on both sides for `padding="same"`.

    If the padding of an axis is odd, the end gets one zero more, and `x` is returned padded.
    """
    sides = []
    for length, width, stride, spread in zip(x.shape[2:], size, strides, dilation, strict=True):
        steps = -(-length // stride)
        total = max((steps - 1) * stride + (width - 1) * spread + 1 - length, 0)
        sides.append((total // 2, total - total // 2))
    if all(before == after for before, after in sides):
        return x, tuple(before for before, _ in sides)
    ends = [side for pair in reversed(sides) for side in pair]  # the last axis comes first
    return functional.pad(x, ends), (0,) * len(sides)


def _is_whole(layer: Any) -> bool:
    """Whether the outputs of a transposed convolution are those of its kernels side by side."""
    plain = layer.output_padding is None and set(layer.dilation_rate) == {1}
    return plain and tuple(layer.kernel_size) == tuple(layer.strides)


@torch.no_grad()
def _lay_out(kernel: Any) -> None:
    """Store a kernel [..., I, O] as PyTorch reads it, so that no step copies it or its gradient."""
    first = kernel.permute(-1, -2, *range(kernel.ndim - 2))
    laid = first.contiguous(memory_format=FORMATS.get(kernel.ndim, torch.contiguous_format))
    kernel.data = laid.permute(*range(2, kernel.ndim), 1, 0)
