"""A PyTorch module with a PyTorch loss: scikit-learn's digits, 8 x 8 pixels, in ten classes.

scalestudy init --task examples/torch_digits.py && scalestudy run
"""

from typing import Any

import torch
from torch import nn

kind = "classes"
engine = "torch"
data = "digits"
train = {"epochs": 10, "batch_size": 64, "learning_rate": 2e-3}


class Network(nn.Module):
    """Two convolutions with batch normalisation, dropout, a linear layer: [B, 1, 8, 8] -> logits [B, 10]."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(channels, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(4 * 64, classes))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of images."""
        return self.head(self.features(images))


def model(data: Any) -> nn.Module:
    """Build the network for images of this data set."""
    return Network(data.input_shape[-1], data.classes)


loss = nn.CrossEntropyLoss(label_smoothing=0.05)
metrics = ["accuracy", "f1"]
