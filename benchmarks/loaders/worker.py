"""One worker process of a loader: reads a command per line from stdin, writes an answer per line to stdout.

Commands: `import`, `cold` (create the loader and read an epoch), `proof` (an epoch with a checksum of every
sample), `epoch` (another epoch), `warm SECONDS` (whole epochs until the time is over).
"""

import json
import os
import sys
import time
import zlib
from typing import Any

import numpy as np
import psutil

from loaders.ways import Task, imported, made


def main() -> None:
    name, task = sys.argv[1], Task(**json.loads(sys.argv[2]))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keep output of libraries out of the answers
    loader, epoch = None, 0
    for line in sys.stdin:
        command, *arguments = line.split()
        answer: dict[str, Any] = {}
        if command == "import":
            try:
                imported(name)
            except ImportError as error:
                answer["missing"] = str(error)
        else:
            seconds = float(arguments[0]) if arguments else 0.0
            wall, cpu = time.perf_counter(), cpu_seconds()
            if loader is None:
                loader = made(name, task)
            samples = 0
            while not samples or time.perf_counter() - wall < seconds:
                if command == "proof":
                    answer["samples"] = sums = proof(loader.epoch(epoch))
                    samples += len(sums)
                else:
                    samples += counted(loader.epoch(epoch), task)
                epoch += 1
            spent = time.perf_counter() - wall
            answer |= {"count": samples, "wall": spent, "cpu": cpu_seconds() - cpu}
        print(json.dumps(answer), file=answers, flush=True)


def counted(batches: Any, task: Task) -> int:
    """Count the samples of an epoch and check that they are 8-bit."""
    total = 0
    for inputs, _ in batches:
        total += inputs.shape[-4]
        assert "uint8" in str(inputs.dtype), inputs.dtype
    return total


def proof(batches: Any) -> list[tuple[int, int, float]]:
    """For every sample: checksums of its input and target, and the mean of its input."""
    found = []
    for batch in batches:
        inputs, targets = (np.asarray(part) for part in batch)
        inputs = inputs.reshape(-1, *inputs.shape[-3:])
        for image, target in zip(inputs, targets.reshape(len(inputs), -1), strict=True):
            data = np.ascontiguousarray(image).tobytes()
            label = np.ascontiguousarray(
                target, np.uint8 if target.size > 1 else np.int32
            ).tobytes()
            found.append((zlib.crc32(data), zlib.crc32(label), float(image.mean())))
    return found


def cpu_seconds() -> float:
    """CPU seconds of this process and its descendants."""
    children = [
        process.cpu_times() for process in psutil.Process().children(recursive=True)
    ]
    return time.process_time() + sum(each.user + each.system for each in children)


if __name__ == "__main__":
    main()
