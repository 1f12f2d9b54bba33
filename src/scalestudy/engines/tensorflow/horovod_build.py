"""How Horovod was built for TensorFlow, read from its files without importing it."""

import hashlib
import importlib.util
import json
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse


def library_file() -> Path | None:
    """Return Horovod's library for TensorFlow, or None if it is not built."""
    spec = importlib.util.find_spec("horovod")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("tensorflow/mpi_lib*.so")):
            return file
    return None


def digest() -> str:
    """Return the SHA-256 of the library, which differs between builds, or "" without one."""
    library = library_file()
    return hashlib.sha256(library.read_bytes()).hexdigest() if library else ""


def wheel() -> str | None:
    """Return the key of the cached wheel from which Horovod was installed (environments/build-horovod.sh)."""
    try:
        text = metadata.distribution("horovod").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    return unquote(urlparse(json.loads(text)["url"]).path).split("/")[-2] if text else None
