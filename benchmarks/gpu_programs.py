"""Start the ranks of the programs that `gpu.py` compares with ours, and wait for their result."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scalestudy.cluster.private_files import SECRET, new_secret
from scalestudy.config.point import Point
from scalestudy.hardware import cores
from scalestudy.hardware.installed import library_path
from scalestudy.launch import reserve

HERE = Path(__file__).parent


def other(what: str, errand: dict[str, Any], point: Point) -> float:
    """Samples per second of a bare program on as many cores and devices as the workers of our point."""
    size, each = point.processes, point.launch.cpus_per_worker
    share = each * point.traits.workers_at_once(point.workers)
    granted, secret = cores.granted(), new_secret()
    inherited = library_path(os.environ).applied(
        os.environ
    )  # the CUDA that our workers load, too
    with reserve.ports(size + 1) as port, tempfile.TemporaryDirectory() as logs:
        processes = []
        for rank in range(size):
            place = {
                "RANK": rank,
                "WORLD_SIZE": size,
                "LOCAL_RANK": rank,
                "LOCAL_WORLD_SIZE": size,
                "MASTER_ADDR": "localhost",
                "MASTER_PORT": port,
                SECRET: secret,
            }
            variables = inherited | {key: str(value) for key, value in place.items()}
            program = HERE / (
                "bare_torch.py" if errand["engine"] == "torch" else "bare.py"
            )
            command = [sys.executable, str(program), json.dumps(errand)]
            log = Path(logs, f"{rank}.log")
            with (
                open(log, "w") as file,
                cores.pinned_to(granted[rank * share : (rank + 1) * share]),
            ):
                processes.append(
                    subprocess.Popen(
                        command,
                        env=variables,
                        stdin=subprocess.PIPE,
                        stdout=file,
                        stderr=subprocess.STDOUT,
                    )
                )
        return awaited(processes, Path(logs), what)


def awaited(processes: list[subprocess.Popen[bytes]], logs: Path, what: str) -> float:
    """Return the rate that rank 0 prints, then let all ranks end."""
    first = processes[0]
    try:
        while "THROUGHPUT" not in (logs / "0.log").read_text():
            if any(process.poll() not in (None, 0) for process in processes):
                break
            try:
                first.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
            break
        for process in processes:
            process.communicate()  # closes its input, for which TensorFlow's ranks wait
    finally:
        for process in processes:
            process.kill()
    text = (logs / "0.log").read_text()
    if "THROUGHPUT" not in text:
        sys.exit(
            f"{what} failed:\n"
            + "\n".join(log.read_text()[-1500:] for log in sorted(logs.iterdir()))
        )
    return float(text.rsplit("THROUGHPUT", 1)[1].split()[0])
