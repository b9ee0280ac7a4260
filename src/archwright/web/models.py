"""Networks that answer: a process beside the server holds torch and the networks asked last, and speaks lines of JSON.

python -m archwright.web.models     reads requests from its input, one per line, until it ends
"""

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from archwright.errors import BadInput, Failed

PATIENCE = 300.0
"""Seconds for an answer: the first one loads torch, data and two networks."""


class ModelProcess:
    """One question at a time; the process is started by the first one, and again when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()
        self._lock = threading.Lock()

    def ask(self, question: str, run: Path, trial: int, **more: Any) -> dict[str, Any]:
        """What `compression.inspection` answers; BadInput and Failed as there."""
        with self._lock:
            process = self._start()
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps({"question": question, "run": str(run), "trial": trial, **more}) + "\n")
                process.stdin.flush()
                answer = json.loads(self._answers.get(timeout=PATIENCE))
            except (OSError, queue.Empty, json.JSONDecodeError) as error:
                self._end()
                raise Failed("the process with the networks did not answer; try again.") from error
        if "bad_input" in answer:
            raise BadInput(answer["bad_input"])
        if "failed" in answer:
            raise Failed(answer["failed"])
        return dict(answer)

    def _start(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            self._answers = queue.Queue()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "archwright.web.models"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            threading.Thread(target=read_lines, args=(self._process, self._answers), daemon=True).start()
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self._end()


def read_lines(process: "subprocess.Popen[str]", answers: "queue.Queue[str]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(line)
    answers.put("")  # it has died: no JSON


def main() -> None:
    """Answers until the input ends."""
    out, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    from archwright.compression.inspection import answer_question
    from archwright.logs import quiet_libraries
    from archwright.progress import quiet

    with quiet_libraries(), quiet():
        for line in sys.stdin:
            try:
                answer = answer_question(**json.loads(line))
            except BadInput as error:
                answer = {"bad_input": str(error)}
            except Exception as error:  # whatever it was: the next question may be a better one
                answer = {"failed": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
