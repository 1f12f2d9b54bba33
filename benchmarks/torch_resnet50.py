"""ResNet-50 (He et al. 2015) as a PyTorch module, for `gpu.py`: 25.6 million weights with 1000 classes."""

from typing import Any

from torch import nn

kind = "classes"
engine = "torch"
train = {"batch_size": 64}
loss = "cross_entropy"
metrics = ["accuracy"]
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Filters and blocks of each stage; a block ends with four times the filters."""


class Bottleneck(nn.Module):
    """Convolutions 1 x 1, 3 x 3 (with the stride) and 1 x 1, added to a shortcut."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *normed(channels, filters, 1),
            nn.ReLU(inplace=True),
            *normed(filters, filters, 3, stride),
            nn.ReLU(inplace=True),
            *normed(filters, 4 * filters, 1),
        )
        same = channels == 4 * filters and stride == 1
        self.shortcut = (
            nn.Identity()
            if same
            else nn.Sequential(*normed(channels, 4 * filters, 1, stride))
        )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        """Return [B, 4 * filters, H / stride, W / stride]."""
        return self.relu(self.path(x) + self.shortcut(x))


def normed(
    channels: int, filters: int, size: int, stride: int = 1
) -> tuple[nn.Module, nn.Module]:
    """Return a convolution without bias and its batch normalisation."""
    convolution = nn.Conv2d(
        channels, filters, size, stride, padding=size // 2, bias=False
    )
    return convolution, nn.BatchNorm2d(filters)


def model(data: Any) -> nn.Module:
    """Return the network, from images [B, C, H, W] to logits [B, classes]."""
    layers: list[nn.Module] = [
        *normed(data.input_shape[-1], 64, 7, 2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = 64
    for filters, blocks in STAGES:
        for block in range(blocks):
            stride = 2 if block == 0 and filters > 64 else 1
            layers.append(Bottleneck(channels, filters, stride))
            channels = 4 * filters
    return nn.Sequential(
        *layers,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, data.classes),
    )
