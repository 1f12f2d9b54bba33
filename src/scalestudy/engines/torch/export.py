"""Exporting a module of PyTorch, so that it loads without this package."""

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

from scalestudy.engines.keras.export import write_whole
from scalestudy.store.model_record import ModelRecord
from scalestudy.tasks.module import ModuleModel
from scalestudy.util.errors import UserError

ROWS = 2
"""Samples of the example batch for tracing; with one sample, the batch size would be taken as fixed."""


class Scaled(nn.Module):
    """A module preceded by the scaling of stored inputs to [0, 1]."""

    def __init__(
        self,
        module: nn.Module,
        scale: float,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.module = module
        self.scale = scale
        self.dtype = dtype

    def forward(self, image: Any) -> Any:
        """Return the outputs for stored inputs `image` [B, C, H, W]."""
        return self.module(image.to(self.dtype) * self.scale)


def export_module(
    model: ModuleModel,
    record: ModelRecord,
    out: str,
    form: str,
) -> None:
    """Export a module with inputs [B, C, H, W] and batches of any size; its outputs are unchanged.

    Args:
        model: The model that the task builds, with its weights.
        record: The model's record; see `Engine.export`.
        out: File to write.
        form: "pt2" (torch.export) or "onnx".

    Raises:
        UserError: If it cannot be written in this form.
    """
    module = model.module.cpu().eval()
    dtype = next(module.parameters()).dtype
    height, width, channels = record.input_shape
    module = Scaled(module, record.scale, dtype).eval()
    image = torch.zeros(
        ROWS,
        channels,
        height,
        width,
        dtype=getattr(torch, record.dtype),
    )
    with write_whole(out, form) as half, torch.no_grad(), warnings.catch_warnings():
        # Tracing warns of branches on sizes, which are those of the record.
        warnings.simplefilter("ignore")
        if form == "pt2":
            batch = torch.export.Dim("batch", min=1)
            program = torch.export.export(
                module,
                (image,),
                dynamic_shapes=({0: batch},),
            )
            torch.export.save(program, half)
        else:
            _write_onnx(module, image, half)


def _write_onnx(module: nn.Module, image: Any, path: Path) -> None:
    if importlib.util.find_spec("onnx") is None:
        raise UserError(
            "the package that writes ONNX",
            "no onnx in this environment",
            "Install it beside Scalestudy: pip install 'scalestudy[onnx]'; or name a .pt2 file with --out.",
        )
    axes = {"image": {0: "batch"}, "output": {0: "batch"}}
    torch.onnx.export(
        module,
        (image,),
        str(path),
        dynamo=False,
        dynamic_axes=axes,
        input_names=["image"],
        output_names=["output"],
    )
