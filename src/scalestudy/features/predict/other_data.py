"""A data set of others, prepared as a model's own was."""

from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.app.listener import Listener

if TYPE_CHECKING:
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.study.model_record import ModelRecord


def prepared_like(record: "ModelRecord", source: str, listener: Listener) -> "Prepared":
    """Prepare a source as the images that a model was trained on.

    Args:
        record: What the model is of.
        source: A folder, an .npz file, or a source with a name; paths are seen from the working folder.
        listener: Is told.

    Raises:
        UserError: If there is none, or it is of another kind.
    """
    from scalestudy.app.prepare import prepare_data
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.study.settings import DataSettings

    own = {key: value for key, value in record.data.items() if key in DataSettings.model_fields}
    # The study's cache is seen from its file, which may be anywhere.
    data = DataSettings.model_validate(own | {"source": source, "validation": None, "cache": None})
    kind = record.kind if record.kind in ("masks", "classes") else None
    folder, _, _ = prepare_data(data, kind, Path(), listener)  # type: ignore[arg-type]
    return Prepared.open(folder)
