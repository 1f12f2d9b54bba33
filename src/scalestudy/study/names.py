"""Settings that are one of a list of names which other packages can add to."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema


class OneOf:
    """Marks a text as one of some names: `Annotated[str, OneOf(names)]`, where `names` gives them when asked.

    In a JSON schema it is an enum, as a Literal would be.
    """

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._known, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"enum": list(self._names()), **handler(schema)}

    def _known(self, name: str) -> str:
        if name not in self._names():
            raise ValueError(f"one of {', '.join(self._names())}")
        return name
