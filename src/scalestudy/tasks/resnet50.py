"""The published study of ResNet-50 on photographs of cassava leaves (Princeton, V100 nodes).

ImageNet weights, no top, global average pooling, Dense 1016 ReLU, softmax over the classes; Adam 1e-4, batch
32 per GPU, 15 epochs, images stretched to 300 x 300. The study divided the input by 255, unlike the training
of the weights; `input_scaling = "pretrained"` scales as that did.
"""

import keras

from scalestudy.config.settings import ResolvedTrain
from scalestudy.tasks.applications import PRETRAINED, classifier
from scalestudy.tasks.task import DataInfo

kind = "classes"
data = {"image_size": [300, 300], "fit": "stretch"}
train = {
    "epochs": 15,
    "batch_size": 32,
    "optimizer": "adam",
    "learning_rate": 1e-4,
    "weights": "imagenet",
    "input_scaling": "unit",
}
pretrained = [PRETRAINED]
loss = "cross_entropy"
metrics = ["accuracy"]


def model(data: DataInfo, train: ResolvedTrain) -> keras.Model:
    """Return the network: from [B, H, W, C] in [0, 1] to probabilities [B, classes]."""
    return classifier("ResNet50", data, train, hidden=1016)
