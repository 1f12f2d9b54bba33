"""Types of the values that keys accept: their ranges, their choices, and words for them in messages."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic_core import CoreSchema, core_schema

from scalestudy.config.objectives import check_loss, check_metrics
from scalestudy.config.operations import checked_augmentation
from scalestudy.plugins.engines import engine_names
from scalestudy.plugins.strategies import swept_names, working_names
from scalestudy.util.registry import Registry

# `wanted` is what messages say instead of the type; see `keys.wanted`.
_SIZE = Field(
    pattern="^[1-9][0-9]{0,5} [KMG]iB$",
    json_schema_extra={"wanted": 'a size such as "32 MiB"'},
)
_OPERATIONS = Field(
    json_schema_extra={
        "wanted": 'operations as "flip, rotate(15)", of `scalestudy docs reference/augmentation`'
    }
)


class OneOf:
    """Restricts a string to known names: `Annotated[str, OneOf(names)]`; `names` is called on each use.

    In a JSON schema it becomes an enum, like a Literal.
    """

    # Not the names themselves: those of other packages are found at the first use.
    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names

    def __get_pydantic_core_schema__(
        self,
        source: Any,
        handler: GetCoreSchemaHandler,
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            self._known,
            handler(source),
        )

    def __get_pydantic_json_schema__(
        self,
        schema: CoreSchema,
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        return {"enum": list(self._names()), **handler(schema)}

    def _known(self, name: str) -> str:
        if name not in self._names():
            choices = [f'"{known}"' for known in self._names()]
            raise ValueError(f"one of {', '.join(choices)}")
        return name


EngineName = Annotated[str, OneOf(engine_names)]
"""Name of an engine."""
LauncherName = Annotated[str, OneOf(Registry[Any]("scalestudy.launchers").names)]
"""What `launch.on` can name; each is a `launch.launcher.Launcher`."""
Strategy = Annotated[str, OneOf(swept_names)]
"""A strategy of a point."""
Implementation = Annotated[str, OneOf(working_names)]
"""A strategy that does the work; "native" is not, since it stands for one of several."""
Optimizer = Literal["sgd", "momentum", "nesterov", "adam", "adamw", "lamb"]
# Far beyond any real training, and small enough to prevent overflow and endless counting.
Rate = Annotated[
    float,
    Field(
        gt=0,
        le=1e6,
        allow_inf_nan=False,
    ),
]
Epochs = Annotated[int, Field(gt=0, le=1_000_000)]
Steps = Annotated[int, Field(gt=0, le=1_000_000)]
Name = Annotated[str, Field(min_length=1)]
Batch = Annotated[int, Field(gt=0, le=10_000_000)]
Workers = Annotated[int, Field(gt=0, le=100_000)]
Cores = Annotated[int, Field(gt=0, le=10_000)]
Seconds = Annotated[
    float,
    Field(
        gt=0,
        le=1e7,
        allow_inf_nan=False,
    ),
]
Pixels = Annotated[int, Field(gt=0, le=65_536)]
Value = Annotated[float, Field(allow_inf_nan=False)]
Colour = Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")]
BucketSize = Literal["auto", "all"] | Annotated[str, _SIZE]


def _as_tuple(given: object) -> object:
    if isinstance(given, str):
        return (given,)
    if isinstance(given, list):
        return tuple(given)
    return given


Loss = Annotated[
    str,
    AfterValidator(check_loss),
    Field(json_schema_extra={"wanted": 'a sum of losses such as "0.5*bce + dice"'}),
]
Metrics = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_tuple),
    AfterValidator(check_metrics),
    Field(
        min_length=1,
        json_schema_extra={"wanted": 'a list of metrics such as ["f1", "top_k(k=5)"]'},
    ),
]
Weight = Annotated[
    float,
    Field(
        ge=0,
        le=1e6,
        allow_inf_nan=False,
    ),
]
Weights = Annotated[
    tuple[Weight, ...],
    Field(
        min_length=2,
        json_schema_extra={"wanted": "a list of numbers, one for each class"},
    ),
]
Augment = Annotated[str, AfterValidator(checked_augmentation), _OPERATIONS]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""Range of NumPy and Keras: 32 bits, unsigned."""
Schedule = Literal["constant", "steps", "linear", "cosine"]


def _regular(text: str) -> str:
    # OverflowError: more repetitions than `re` can count.
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"a regular expression ({error})") from error
    return text


Pattern = Annotated[
    str,
    AfterValidator(_regular),
    Field(json_schema_extra={"wanted": "a regular expression"}),
]
