"""Tasks compute in the process of the tests."""

import pytest


@pytest.fixture(autouse=True)
def _framework(framework):
    """Set TensorFlow up before anything computes."""
