"""The task `unet` as a PyTorch module, with the same layers and initialization."""

from itertools import pairwise
from typing import Any

import torch
from torch import nn

from scalestudy.tasks.task import DataInfo

kind = "masks"
engine = "torch"
data = "indents"
train = {"epochs": 20, "batch_size": 16, "schedule": "steps"}

ENCODER = (8, 16, 32, 64)
BRIDGE = 128
HALVINGS = 2 ** len(ENCODER)


class UNet(nn.Module):
    """Encoder 8-16-32-64, bridge 128, decoder 64-32-16-8; a block is twice convolution, norm and ReLU.

    It maps [B, C, H, W] to logits [B, 1, H, W] for 2 classes, else [B, classes, H, W]. Sizes that cannot be
    halved four times are padded with zeros, and the logits are cropped.
    """

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        inner = (channels, *ENCODER)
        self.encoder = nn.ModuleList(map(_block, inner, ENCODER))
        self.bridge = _block(ENCODER[-1], BRIDGE)
        wide = (BRIDGE, *reversed(ENCODER))
        self.up = nn.ModuleList()
        for before, filters in pairwise(wide):
            self.up.append(nn.ConvTranspose2d(before, filters, 2, stride=2))
        self.decoder = nn.ModuleList()
        for filters in reversed(ENCODER):
            self.decoder.append(_block(2 * filters, filters))
        outputs = classes
        if classes == 2:
            outputs = 1
        self.head = nn.Conv2d(ENCODER[0], outputs, 1)
        begin_as_keras(self)

    def forward(self, images: Any) -> Any:
        """Return the logits of images."""
        height, width = images.shape[-2:]
        missing_rows = -height % HALVINGS
        missing_columns = -width % HALVINGS
        above = missing_rows // 2
        left = missing_columns // 2
        below = missing_rows - above
        right = missing_columns - left
        # From the last axis to the first, as `pad` takes it.
        padding = (left, right, above, below)
        x = images
        if any(padding):
            x = nn.functional.pad(images, padding)
        skips = []
        for block in self.encoder:
            x = block(x)
            # Before the pooling, which loses the positions that the decoder needs.
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.bridge(x)
        for up, block, skip in zip(self.up, self.decoder, reversed(skips), strict=True):
            joined = torch.cat([up(x), skip], 1)
            x = block(joined)
        logits = self.head(x)
        return logits[..., above : above + height, left : left + width]


def model(data: DataInfo) -> nn.Module:
    """Return the network for this data."""
    return UNet(data.input_shape[-1], data.classes)


loss = "cross_entropy"
metrics = ["iou"]


def begin_as_keras(module: nn.Module) -> nn.Module:
    """Initialize a module as Keras does: Glorot uniform weights, biases 0."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    return module


def _block(before: int, filters: int) -> nn.Module:
    # Keras's epsilon and momentum, so that both networks learn alike.
    return nn.Sequential(
        nn.Conv2d(before, filters, 3, padding=1),
        nn.BatchNorm2d(filters, eps=1e-3, momentum=0.01),
        nn.ReLU(),
        nn.Conv2d(filters, filters, 3, padding=1),
        nn.BatchNorm2d(filters, eps=1e-3, momentum=0.01),
        nn.ReLU(),
    )
