"""A segmentation model from another Keras library: DeepLabV3+ of KerasHub, on images with masks.

Needs KerasHub beside Scalestudy: pip install keras-hub==0.32.0. It is trained from scratch and kept small, so
that it runs everywhere; `keras_hub.models.DeepLabV3Backbone.from_preset(...)` would load pretrained weights.
Its batch normalisation is inside layers of the library, and gives the same result on any number of workers.
"""

from typing import Any

import keras
import keras_hub

from scalestudy.tasks import unet

kind = "masks"
data = "indents:120"
train = {"epochs": 10, "batch_size": 8}


def model(data: Any) -> keras.Model:
    """Build a ResNet of three stages with atrous pooling and the decoder: images to probabilities."""
    encoder = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64],
        input_conv_kernel_sizes=[3],
        stackwise_num_filters=[64, 64, 64],
        stackwise_num_blocks=[1, 1, 1],
        stackwise_num_strides=[1, 2, 2],
        block_type="basic_block",
        image_shape=data.input_shape,
    )
    backbone = keras_hub.models.DeepLabV3Backbone(
        image_encoder=encoder,
        spatial_pyramid_pooling_key="P4",
        low_level_feature_key="P2",
        upsampling_size=4,
        dilation_rates=[2, 4, 6],
        projection_filters=16,
        image_shape=data.input_shape,
    )
    return keras_hub.models.DeepLabV3ImageSegmenter(
        backbone=backbone,
        num_classes=1 if data.classes == 2 else data.classes,
        activation="sigmoid" if data.classes == 2 else "softmax",
    )


loss = unet.loss
metrics = unet.metrics
