"""How Horovod was built for TensorFlow, read from its files: nothing is imported."""

import hashlib
import importlib.util
import json
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse


def library_file() -> Path | None:
    """Horovod's library for TensorFlow, if it is built."""
    spec = importlib.util.find_spec("horovod")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("tensorflow/mpi_lib*.so")):
            return file
    return None


def digest() -> str:
    """SHA-256 of that library; "" without it. Builds of one source differ in it."""
    library = library_file()
    return hashlib.sha256(library.read_bytes()).hexdigest() if library else ""


def wheel() -> str | None:
    """Key of the cached wheel that Horovod was installed from (environments/build-horovod.sh)."""
    try:
        text = metadata.distribution("horovod").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    return unquote(urlparse(json.loads(text)["url"]).path).split("/")[-2] if text else None
