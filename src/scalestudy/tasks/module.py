"""A PyTorch nn.Module with the interface of a Keras model, so that one trainer serves both."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from scalestudy.data.samples import Column, Described, leaves, map_columns
from scalestudy.tasks.file import remedy_for
from scalestudy.tasks.label_losses import LOGITS
from scalestudy.util.errors import UserError
from scalestudy.util.tracebacks import locate_error

HALF = {"mixed_bfloat16": torch.bfloat16, "mixed_float16": torch.float16}
OWN_AXES = {"masks": 3, "classes": 1}
"""Number of axes of a batch of outputs without the class axis, by the kind of data."""
OF_LOGITS = (
    "CrossEntropyLoss",
    "cross_entropy",
    "BCEWithLogitsLoss",
    "binary_cross_entropy_with_logits",
)
"""PyTorch losses that expect logits."""


class Buffer(keras.Variable):
    """A buffer of a module as a Keras variable. It stays valid if the module assigns another tensor."""

    def __init__(
        self,
        owner: nn.Module,
        key: str,
        name: str,
    ) -> None:
        self._owner = owner
        self._key = key
        tensor: Any = getattr(owner, key)
        super().__init__(
            tensor,
            dtype=_name(tensor.dtype),
            trainable=False,
            autocast=False,
            name=name,
        )

    def _initialize(self, value: Any) -> None:
        """Do nothing: the module keeps its own tensor."""

    @property
    def _value(self) -> Any:
        return getattr(self._owner, self._key)


class Part:
    """A submodule with the part of the Keras layer interface that freezing needs.

    Attributes:
        name: Path of the submodule, such as "backbone.stem".
    """

    def __init__(
        self,
        name: str,
        module: nn.Module,
        variables: Sequence[Any],
    ) -> None:
        self.name = name
        self._module = module
        self._learns = [variable for variable in variables if variable.trainable]

    @property
    def trainable(self) -> bool:
        """Whether its parameters are trained; if not, batch normalisation uses its running statistics."""
        return any(variable.trainable for variable in self._learns)

    @trainable.setter
    def trainable(self, value: bool) -> None:
        for variable in self._learns:
            variable.trainable = value
        for inner in self._module.modules():
            if isinstance(inner, nn.modules.batchnorm._BatchNorm):
                # Read by the layer that replaces it, which then keeps to its running statistics.
                inner.frozen = not value  # type: ignore[assignment]

    def _flatten_layers(self) -> list["Part"]:
        return [self]


def _keep_layout(layer: nn.Module, inputs: Any, outputs: Any) -> None:
    """Convert the gradients of max-pooling to channels last, the layout of its inputs.

    Behind `nn.Flatten` gradients are channels first. For these, max-pooling on CPUs copies its inputs twice.
    """
    if torch.is_tensor(outputs) and outputs.requires_grad and outputs.ndim == 4:
        outputs.register_hook(_to_channels_last)  # type: ignore[no-untyped-call]


def _to_channels_last(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.contiguous(memory_format=torch.channels_last)


class ModuleModel:
    """A PyTorch module with the part of the Keras model interface that trainers and tasks use.

    A call takes inputs with channels last, passes a channels-first view of them to the module, and returns
    the module's outputs unchanged. Losses and metrics chosen by name receive `probabilities(outputs)`.

    Args:
        module: The module that the task file returns. It is moved to the device and data type of the run.
        inputs: Shape and type of a sample's inputs.
        kind: Kind of data: "masks", "classes", or "custom", for which inputs and outputs are not permuted.
        precision: Precision as named in a study.
        logits: Whether the outputs are logits, before a softmax or (one channel) a sigmoid.
        file: Path of the task file, for messages.

    Raises:
        UserError: If the module does not accept these inputs.
    """

    def __init__(
        self,
        module: nn.Module,
        inputs: Described,
        *,
        kind: str,
        precision: str,
        logits: bool,
        file: str,
    ) -> None:
        self.kind = kind
        self.logits = logits
        self.name = type(module).__name__
        self._dtype = torch.float64 if precision == "float64" else torch.float32
        self._half = HALF.get(precision)
        self._device = keras.ops.convert_to_tensor(0.0).device
        # Before the first call, which a wrapper would answer in its own way.
        _refuse_wrapped(module, file)
        self.module = module.to(self._device, self._dtype)
        self.call: Any = self.module
        self._norms: list[nn.Module] = []
        columns = leaves(inputs)
        self._of_any_length = any(None in column.shape for column in columns)
        self._zeros = map_columns(self._zero, inputs)
        self.losses: list[Any] = []  # of regularisers, which modules do not have
        self.optimizer: Any = None
        self.stop_training = False
        self.built = True
        try:
            with torch.no_grad():
                outputs = self.probabilities(self(self._zeros, training=False))
        except Exception as error:  # raised by the user's classes
            raise UserError(
                f"model(inputs) of {file} to accept samples of the data",
                locate_error(error),
                remedy_for(error, f"Correct the module. {_describe(inputs, kind)}"),
            ) from error
        # After the first batch, which gives lazy modules their shapes.
        if kind != "custom":
            self.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            for layer in self.module.modules():
                if isinstance(layer, nn.MaxPool2d):
                    layer.register_forward_hook(_keep_layout)
        for layer in self.module.modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                self._norms.append(layer)
        self.output = keras.tree.map_structure(_symbol, outputs)
        self.outputs: list[Any] = keras.tree.flatten(self.output)
        self.output_names = [f"output_{index}" for index in range(len(self.outputs))]
        parameters = [
            _variable(name, value) for name, value in self.module.named_parameters()
        ]
        self.buffers = list(self._buffers())
        self.weights = [*parameters, *self.buffers]
        self.variables = self.weights
        self.named: dict[str, Any] = {
            variable.name: variable for variable in self.weights
        }
        self.layers = [
            self._part(name, inner)
            for name, inner in self.module.named_modules()
            if name
        ]

    def _part(self, name: str, inner: nn.Module) -> Part:
        # A parameter that two submodules share has the name of the first.
        own = [f"{name}.{key}" for key, _ in inner.named_parameters()]
        variables = [self.named[path] for path in own if path in self.named]
        return Part(name, inner, variables)

    def __call__(self, inputs: Any, training: bool = False) -> Any:
        """Return the module's outputs for inputs [B, ...]; half-precision outputs become float32."""
        self.module.train(training)
        if training:
            for layer in self._norms:
                if getattr(layer, "frozen", False):
                    layer.eval()
        views = map_columns(self._given, inputs)
        if self._half is None:
            return self.call(views)
        # Weights stay float32; operations convert what they need.
        with torch.autocast(self._device.type, self._half):
            outputs = self.call(views)
        return keras.tree.map_structure(lambda tensor: tensor.float(), outputs)

    def compiled(self) -> "ModuleModel":
        """Return the same model, whose calls `torch.compile` compiles."""
        other = copy.copy(self)
        # With shapes that may change, all batches would be computed in the slower graph for batches of any
        # size, because of the last one of an epoch. Sequences have many lengths, each of which would compile.
        dynamic: bool | None = False
        if self._of_any_length:
            dynamic = None
        other.call = torch.compile(self.module, dynamic=dynamic)
        return other

    def probabilities(self, outputs: Any) -> Any:
        """Convert outputs to probabilities with channels last, and attach the logits as an attribute."""
        if self.kind == "custom" or not torch.is_tensor(outputs):
            return outputs
        if outputs.ndim == OWN_AXES[self.kind]:
            values = outputs.unsqueeze(-1)
        else:
            values = outputs.movedim(1, -1)
        if not self.logits:
            return values
        if values.shape[-1] == 1:
            chances = torch.sigmoid(values)
        else:
            chances = torch.softmax(values, -1)
        # As Keras does, so that losses by name find them there.
        setattr(chances, LOGITS, values)
        return chances

    @property
    def trainable_variables(self) -> list[Any]:
        """Trainable parameters, in the order of the module."""
        return [variable for variable in self.weights if variable.trainable]

    def get_layer(self, name: str) -> Part:
        """Return the submodule with this path."""
        return next(part for part in self.layers if part.name == name)

    def get_weights(self) -> list[Any]:
        """Return the values of all weights."""
        return [keras.ops.convert_to_numpy(weight.value) for weight in self.weights]

    def set_weights(self, values: Sequence[Any]) -> None:
        """Set all weights to values returned by `get_weights`."""
        for weight, value in zip(self.weights, values, strict=True):
            weight.assign(value)

    def count_params(self) -> int:
        """Return the number of values in floating-point parameters and buffers, as Keras counts them."""
        count = 0
        for weight in self.weights:
            if weight.value.is_floating_point():
                count += weight.value.numel()
        return count

    def flops(self, trained: Sequence[Any]) -> float | None:
        """Return floating-point operations per sample of a training step; a multiply-add counts as two.

        They are counted in evaluation, which changes no state. None if that has no gradient, as for a module
        that evaluates an average of its weights or sets `torch.set_grad_enabled(self.training)`.
        """
        parameters = [variable.value for variable in trained]
        try:
            with torch.enable_grad(), FlopCounterMode(display=False) as counter:
                total: Any = 0
                for tensor in keras.tree.flatten(self(self._zeros)):
                    if tensor.requires_grad:
                        total = total + tensor.sum()
                # Under the counter, torch.autograd.grad fails if a submodule takes a parameter as its input.
                total.backward(inputs=parameters)
            return float(counter.get_total_flops())
        except Exception:
            # Raised by the user's classes: a figure beside the result must not lose it.
            return None
        finally:
            for parameter in parameters:
                # The next step must not add to these gradients.
                parameter.grad = None

    def save(self, path: str) -> None:
        """Write the module's state dict, for `module.load_state_dict(torch.load(path))`."""
        torch.save(self.module.state_dict(), path)

    def prove_savable(self, path: str) -> None:
        """Save the state dict to `path`, load it, and compare.

        Raises:
            UserError: If the loaded state dict differs.
        """
        self.save(path)
        state = self.module.state_dict()
        again = self._read(path)
        alike = (torch.equal(value.cpu(), again[key]) for key, value in state.items())
        if state.keys() != again.keys() or not all(alike):
            raise UserError(
                "a state dict that is the same after saving and loading",
                f"a different one of {self.name}",
                "Keep all state in parameters and buffers.",
            )

    def restore(self, path: str) -> None:
        """Load the weights that `save` wrote; raises `UserError` if they do not fit this module."""
        try:
            self.module.load_state_dict(self._read(path))
        except (RuntimeError, TypeError) as error:
            raise UserError(
                f"the weights of the module {self.name} that its task builds now",
                f"others in {path}: {str(error).splitlines()[-1].strip()}",
                "Use data of the size and channels of its training, and do not change its task file.",
            ) from error

    def _read(self, path: str) -> dict[str, Any]:
        try:
            state: dict[str, Any] = torch.load(
                # Other objects in the file could run code when they are loaded.
                path,
                map_location="cpu",
                weights_only=True,
            )
        except Exception as error:  # pickle and PyTorch raise many types
            raise UserError(
                f"a state dict of PyTorch: {path}",
                f"{type(error).__name__}: {str(error).splitlines()[0]}",
                "Check that the file is intact. Objects of other classes cannot be loaded safely.",
            ) from error
        return state

    def bounded(self) -> bool:
        """Whether the outputs of two samples of large noise lie in [0, 1]."""
        outputs = self.of_noise()
        return bool(((outputs >= 0) & (outputs <= 1)).all())

    def of_noise(self) -> Any:
        """Return the outputs of two samples of large noise, the same in every process."""
        generator = torch.Generator(self._device).manual_seed(0)

        def noise(zeros: Any) -> Any:
            if not zeros.is_floating_point():
                return torch.cat([zeros, zeros])
            size = (2, *zeros.shape[1:])
            return 1e3 * torch.randn(
                size,
                generator=generator,
                dtype=zeros.dtype,
                device=zeros.device,
            )

        with torch.no_grad():
            return self(map_columns(noise, self._zeros), training=False)

    def _flatten_layers(self) -> list[nn.Module]:
        return list(self.module.modules())

    def _buffers(self) -> Iterator[Buffer]:
        # Buffers that are not persistent are no part of a saved model.
        kept = self.module.state_dict(keep_vars=True)
        for path, inner in self.module.named_modules():
            for key, _ in inner.named_buffers(recurse=False):
                name = f"{path}.{key}" if path else key
                if name in kept:
                    yield Buffer(inner, key, name)

    def _zero(self, column: Column) -> Any:
        """Return a batch of one sample of zeros, in the loader's layout."""
        dtype = self._dtype
        if "float" not in column.dtype:
            dtype = getattr(torch, column.dtype)
        lengths = [1 if length is None else length for length in column.shape]
        return torch.zeros(1, *lengths, dtype=dtype, device=self._device)

    def _given(self, tensor: Any) -> Any:
        given = tensor
        if tensor.is_floating_point():
            given = tensor.to(self._dtype)
        if self.kind == "custom":
            return given
        return given.movedim(-1, 1)


def _describe(inputs: Described, kind: str) -> str:
    """Say what `forward` receives."""
    if isinstance(inputs, Mapping):
        names = ", ".join(f"inputs[{name!r}]" for name in inputs)
        return f"Its forward(self, inputs) gets one dictionary: {names}."
    shape = "channels, height, width"
    if kind == "custom":
        shape = ", ".join(map(str, inputs.shape))
    return f"Its input has shape [B, {shape}]."


def _refuse_wrapped(module: nn.Module, file: str) -> None:
    """Refuse wrappers that hide a module's layers, since layers must know their rows of the batch."""
    kinds = nn.DataParallel, nn.parallel.DistributedDataParallel, torch.jit.ScriptModule
    for path, inner in module.named_modules():
        if isinstance(inner, kinds) or hasattr(inner, "_orig_mod"):  # torch.compile's
            raise UserError(
                f"a plain nn.Module from model(data) in {file}",
                f"{type(inner).__name__}{f' at {path}' if path else ''}, which wraps one",
                "Return the module itself, without torch.compile, TorchScript or DistributedDataParallel: the"
                " strategy shares out the work, and replaces batch normalisation and dropout.",
            )


def note_on_logits(
    model: ModuleModel,
    outputs: Any,
    loss: Any,
    file: str,
) -> list[str]:
    """Return a note if the outputs do not fit `logits` of the task file or its PyTorch loss.

    Raises:
        UserError: If the task file sets `logits = False` and the outputs are no probabilities.
    """
    if model.kind == "custom" or not torch.is_tensor(outputs):
        return []
    has_classes = outputs.ndim > OWN_AXES[model.kind] and outputs.shape[1] > 1
    low = float(outputs.detach().min())
    high = float(outputs.detach().max())
    chances = low >= 0 and high <= 1
    if chances and has_classes:
        chances = bool((outputs.sum(1) - 1).abs().max() < 1e-3)
    elif chances and model.logits:
        # Logits of one channel may lie in [0, 1] by chance, but not for inputs of large noise.
        chances = model.bounded()
    kind = loss
    if not hasattr(loss, "__name__"):
        kind = type(loss)
    name = ""
    if str(kind.__module__).startswith("torch.nn."):
        name = kind.__name__
    if name in OF_LOGITS and chances:
        return [
            f"Note: outputs of {file} from {low:.3g} to {high:.3g} look like probabilities, but {name} "
            "expects logits and applies softmax or sigmoid itself: remove it from the end of the module."
        ]
    if model.logits and chances:
        return [
            f"Note: outputs of {file} from {low:.3g} to {high:.3g} look like probabilities, and are taken "
            "for logits: write logits = False in the task file if the module ends in a softmax or a sigmoid."
        ]
    if not model.logits and not chances:
        raise UserError(
            f"probabilities from the module of {file}, as declared by logits = False",
            f"outputs from {low:.3g} to {high:.3g}",
            "Remove logits = False, or end the module with a softmax, or a sigmoid of one channel.",
        )
    return []


def _symbol(tensor: Any) -> keras.KerasTensor:
    return keras.KerasTensor((None, *tensor.shape[1:]), _name(tensor.dtype))


def _variable(name: str, value: Any) -> keras.Variable:
    return keras.Variable(
        value,
        dtype=_name(value.dtype),
        trainable=value.requires_grad,
        autocast=False,
        name=name,
    )


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
