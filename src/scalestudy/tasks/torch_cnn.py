"""The task `cnn` as a PyTorch module, with the same layers and initialization."""

from torch import nn

from scalestudy.tasks.task import DataInfo
from scalestudy.tasks.torch_unet import begin_as_keras

kind = "classes"
engine = "torch"
data = "digits"
train = {"epochs": 8, "batch_size": 128}


def cnn_module(input_shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Conv 32, Conv 64, max-pool, dropout ¼, dense 128, dropout ½.

    Returns:
        A module from [B, C, H, W] to logits [B, classes].
    """
    height, width, channels = input_shape
    return begin_as_keras(
        nn.Sequential(
            nn.Conv2d(channels, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.25),
            nn.Flatten(),
            nn.Linear(64 * ((height - 4) // 2) * ((width - 4) // 2), 128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, classes),
        )
    )


def model(data: DataInfo) -> nn.Module:
    """Return the network for this data."""
    return cnn_module(data.input_shape, data.classes)


loss = "cross_entropy"
metrics = ["accuracy"]
