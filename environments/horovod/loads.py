"""Check that Horovod loads and has the given libraries: `loads.py gloo|mpi|nccl...`; on failure exit code 1.

The message is the loader's own. TARGET is the folder that Horovod must come from; "" for this Python's own.
"""

import os
import sys

try:
    import horovod.tensorflow as hvd
except (
    Exception
) as error:  # TensorFlow passes on the loader's message in several exception types
    sys.exit(
        f"expected Horovod's library to load; received {type(error).__name__}: {error}"
    )
lacking = [name for name in sys.argv[1:] if not getattr(hvd, f"{name}_built")()]
if lacking or not hvd.__file__.startswith(os.environ.get("TARGET", "")):
    sys.exit(
        f"expected Horovod with {', '.join(sys.argv[1:])}; received {hvd.__file__} without {lacking}."
    )
