"""Scalestudy: train one Keras model on many workers, and know what each worker bought you."""

UNKNOWN_VERSION = "0.0"
"""What source without its history is called; pyproject.toml (fallback_version) says the same."""


def __getattr__(name: str) -> str:
    """`__version__`, as it was installed: read when asked for, so that --help need not."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("scalestudy")
    except PackageNotFoundError:
        return UNKNOWN_VERSION
