"""`python -m scalestudy.features.predict.worker JOB RANK`: one process that uses a model; JOB is a file.

It writes what the job (`job.Job`) asks for, then `done-RANK.json` beside it; or `error-RANK.json`: why not.
"""

import json
import os
import sys
import traceback
from pathlib import Path

from scalestudy.features.predict.job import Job
from scalestudy.util.errors import ScalestudyError, explained
from scalestudy.util.files import write_atomically

ENDS_WITH = "SCALESTUDY_LAUNCHER"
"""Variable: number of the process that this one ends with."""


def main(arguments: list[str]) -> int:
    """Do this process's share."""
    from scalestudy.hardware.parent import end_with

    path, rank = Path(arguments[0]), int(arguments[1])
    if ENDS_WITH in os.environ:
        end_with(int(os.environ[ENDS_WITH]))
    try:
        answer = _done(Job.model_validate_json(path.read_bytes()), rank, path.parent)
    except Exception as error:
        traceback.print_exc()
        told = explained(error)
        _write(path.parent / f"error-{rank}.json", _words(told) if told else {"received": repr(error)})
        return told.exit_code if told else 1
    _write(path.parent / f"done-{rank}.json", answer)
    return 0


def _done(job: Job, rank: int, folder: Path) -> dict[str, object]:
    from scalestudy.features.predict.setting_up import engine_for

    engine = engine_for(job.record, job.device)
    if job.action == "export":
        engine.export(job.model, job.record, job.out, job.form)
        return {}
    if job.action == "evaluate":
        from scalestudy.features.predict.evaluate_share import evaluate_share

        return evaluate_share(engine, job, rank, folder)
    model = engine.inference(job.model, job.record)
    if job.action == "gallery":
        import numpy as np

        from scalestudy.data.store.prepared import Prepared
        from scalestudy.training.gallery import gallery_of

        rows, prepared = np.array(job.rows, np.int64), Prepared.open(job.prepared)
        shown = gallery_of(
            model, job.record, prepared, rows, count=job.samples, better=job.better, of=len(rows)
        )
        return shown.model_dump(mode="json")
    from scalestudy.features.predict.predict_share import predict_share

    predict_share(model, job, rank, folder)
    return {}


def _words(error: ScalestudyError) -> dict[str, object]:
    return {
        "expected": error.expected,
        "received": error.received,
        "action": error.action,
        "code": error.exit_code,
    }


def _write(path: Path, answer: dict[str, object]) -> None:
    write_atomically(path, json.dumps(answer), durable=False)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the framework's threads are not waited for
