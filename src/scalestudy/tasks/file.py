"""A user's task file, imported. Imports no framework, unless the file does."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from scalestudy.util.errors import UserError
from scalestudy.util.tracebacks import told


def import_file(path: Path) -> ModuleType:
    """Import a user's task file.

    Raises:
        UserError: If the file cannot be imported; the message holds its own error.
    """
    spec = importlib.util.spec_from_file_location(f"scalestudy_task_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(
            f"a task file that can be imported: {path}",
            told(error),
            "Run it with python to see the whole traceback.",
        ) from error
    finally:
        sys.path.remove(str(path.parent))
    return module
