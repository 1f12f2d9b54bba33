"""Keras's convolutions and pooling without copies between layouts, and with the bias in the same kernel.

Keras copies channels-last images for PyTorch, which computes in both layouts: a view with channels first has
its `channels_last` memory format.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from keras import layers, ops
from torch.nn import functional

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
"""Memory format of a kernel by its number of axes; otherwise it is contiguous."""
CONVOLVE: dict[int, Any] = {
    1: functional.conv1d,
    2: functional.conv2d,
    3: functional.conv3d,
}
TRANSPOSE: dict[int, Any] = {
    1: functional.conv_transpose1d,
    2: functional.conv_transpose2d,
    3: functional.conv_transpose3d,
}
"""PyTorch's functions by the number of spatial axes."""
FIRST = "channels_first"


class ChannelsFirst:
    """Computes channels-last inputs as a view with channels first. It is mixed into a layer of Keras."""

    def computed(self, x: Any) -> Any:
        """Return outputs [B, C, ...] of inputs [B, C, ...]."""
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        """Return what the layer computes of `inputs` (shape [B, ..., C])."""
        outputs = self.computed(inputs.movedim(-1, 1))
        return outputs.movedim(1, -1)


class _MaxPooled(ChannelsFirst):
    def computed(self: Any, x: Any) -> Any:
        return ops.max_pool(x, self.pool_size, self.strides, self.padding, FIRST)


class _MeanPooled(ChannelsFirst):
    def computed(self: Any, x: Any) -> Any:
        return ops.average_pool(x, self.pool_size, self.strides, self.padding, FIRST)


class Activated(ChannelsFirst):
    """Applies the activation, which may be along the channels, after they are last again."""

    def call(self: Any, inputs: Any) -> Any:
        """See `ChannelsFirst.call`."""
        outputs = self.computed(inputs.movedim(-1, 1)).movedim(1, -1)
        if self.activation is None:
            return outputs
        return self.activation(outputs)

    def with_bias(self: Any, outputs: Any) -> Any:
        """Add the bias to outputs [B, C, ...]."""
        if not self.use_bias:
            return outputs
        bias = ops.convert_to_tensor(self.bias)
        return outputs + bias.view(-1, *[1] * self.rank)


class _Depthwise(Activated):
    def computed(self: Any, x: Any) -> Any:
        kernel = ops.convert_to_tensor(self.kernel)
        outputs = ops.depthwise_conv(
            x,
            kernel,
            self.strides,
            self.padding,
            FIRST,
            self.dilation_rate,
        )
        return self.with_bias(outputs)


class _Separable(Activated):
    def computed(self: Any, x: Any) -> Any:
        depthwise = ops.convert_to_tensor(self.depthwise_kernel)
        pointwise = ops.convert_to_tensor(self.pointwise_kernel)
        outputs = ops.separable_conv(
            x,
            depthwise,
            pointwise,
            self.strides,
            self.padding,
            FIRST,
            self.dilation_rate,
        )
        return self.with_bias(outputs)


class _Transposed(Activated):
    def computed(self: Any, x: Any) -> Any:
        kernel = ops.convert_to_tensor(self.kernel)
        outputs = ops.conv_transpose(
            x,
            kernel,
            self.strides,
            self.padding,
            self.output_padding,
            FIRST,
            self.dilation_rate,
        )
        return self.with_bias(outputs)


class _SideBySide(Activated):
    """A transposed convolution whose outputs are those of its kernels side by side."""

    def computed(self: Any, x: Any) -> Any:
        kernel, bias = kernel_and_bias(self)
        return TRANSPOSE[self.rank](x, kernel, bias, stride=self.strides)


class _Convolved(Activated):
    def computed(self: Any, x: Any) -> Any:
        kernel, bias = kernel_and_bias(self)
        padding: Any = 0
        # Not PyTorch's own "same", which refuses strides.
        if self.padding == "same":
            x, padding = padded(x, kernel.shape[2:], self.strides, self.dilation_rate)
        return CONVOLVE[self.rank](
            x,
            kernel,
            bias,
            self.strides,
            padding,
            self.dilation_rate,
            self.groups,
        )


def keep_layout(layer: Any) -> None:
    """Replace a convolution or pooling of Keras's own in place; leave other layers as they are."""
    # Its exact type: a subclass may compute something else.
    kind = type(layer)
    by = _replacements().get(kind)
    if by is None or not layer.built:
        return
    if layer.data_format != "channels_last" or layer.padding not in ("valid", "same"):
        return
    if by is _Transposed and _is_side_by_side(layer):
        by = _SideBySide
    # In place: the graph of the model holds this very layer.
    layer.__class__ = type(kind.__name__, (by, kind), {})
    if by in (_Convolved, _SideBySide):
        _lay_out(layer.kernel.value)


@cache
def _replacements() -> dict[type[layers.Layer], type[ChannelsFirst]]:
    """Return the class that computes each of Keras's layers in PyTorch's layout."""
    return {
        layers.MaxPooling1D: _MaxPooled,
        layers.MaxPooling2D: _MaxPooled,
        layers.MaxPooling3D: _MaxPooled,
        layers.AveragePooling1D: _MeanPooled,
        layers.AveragePooling2D: _MeanPooled,
        layers.AveragePooling3D: _MeanPooled,
        layers.DepthwiseConv1D: _Depthwise,
        layers.DepthwiseConv2D: _Depthwise,
        layers.SeparableConv1D: _Separable,
        layers.SeparableConv2D: _Separable,
        layers.Conv1D: _Convolved,
        layers.Conv2D: _Convolved,
        layers.Conv3D: _Convolved,
        layers.Conv1DTranspose: _Transposed,
        layers.Conv2DTranspose: _Transposed,
        layers.Conv3DTranspose: _Transposed,
    }


def kernel_and_bias(layer: Any) -> tuple[Any, Any]:
    """Return the kernel of a convolution as PyTorch takes it, channels first, and its bias or None."""
    kernel = ops.convert_to_tensor(layer.kernel)
    bias = ops.convert_to_tensor(layer.bias) if layer.use_bias else None
    return kernel.permute(-1, -2, *range(kernel.ndim - 2)), bias


def padded(
    x: Any,
    size: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> tuple[Any, tuple[int, ...]]:
    """Return `x` [B, C, ...] and its padding on both sides for `padding="same"`.

    If the padding of an axis is odd, the end gets one zero more, and `x` is returned padded.
    """
    sides = []
    for length, width, stride, spread in zip(
        x.shape[2:],
        size,
        strides,
        dilation,
        strict=True,
    ):
        # Rounded up, as the outputs of "same" are in TensorFlow and Keras.
        steps = -(-length // stride)
        reach = (steps - 1) * stride + (width - 1) * spread + 1
        total = max(reach - length, 0)
        sides.append((total // 2, total - total // 2))
    # PyTorch's convolutions pad both ends alike; uneven padding has to come before them.
    if all(before == after for before, after in sides):
        return x, tuple(before for before, _ in sides)
    ends = [
        side for pair in reversed(sides) for side in pair
    ]  # the last axis comes first
    return functional.pad(x, ends), (0,) * len(sides)


def _is_side_by_side(layer: Any) -> bool:
    plain = layer.output_padding is None and set(layer.dilation_rate) == {1}
    # Then no two positions of the input reach the same output: a product of matrices computes all of it.
    return plain and tuple(layer.kernel_size) == tuple(layer.strides)


@torch.no_grad()
def _lay_out(kernel: Any) -> None:
    """Store a kernel [..., I, O] as PyTorch reads it, so that no step copies it or its gradient."""
    first = kernel.permute(-1, -2, *range(kernel.ndim - 2))
    laid = first.contiguous(
        memory_format=FORMATS.get(kernel.ndim, torch.contiguous_format)
    )
    # Only its data: the layer holds this very parameter.
    kernel.data = laid.permute(*range(2, kernel.ndim), 1, 0)
