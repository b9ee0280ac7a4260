"""Commands by two processes that train together: python -m tests.compression.pair FOLDER < a JSON list of command lines

The process splits itself, so everything is loaded once, and tells its halves what torchrun would. Both do one command
after another. FOLDER gets process id, exit codes, stdout and stderr of each as `0.pid`, `0.code`, `0.out`, `0.err` and
so on. As a launcher does, it interrupts the other process when one has ended badly.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from torch import distributed

from archwright.cli.main import main
from archwright.commands import COMMANDS, load


def launch(folder: Path, commands: list[list[str]]) -> int:
    """0 when both have done all commands."""
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "WORLD_SIZE": "2"}
    os.environ |= {"LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    for name in ("compress", "select"):
        load(COMMANDS[name].target)
    running, worst = {start(rank, folder, commands) for rank in range(2)}, 0
    while running:
        for child in list(running):
            if (done := os.waitpid(child, os.WNOHANG))[0]:
                running.remove(child)
                worst = max(worst, abs(os.waitstatus_to_exitcode(done[1])))
                for other in running if worst else ():
                    os.kill(other, signal.SIGTERM)
        time.sleep(0.02)
    return worst


def start(rank: int, folder: Path, commands: list[list[str]]) -> int:
    child = os.fork()
    if child:
        (folder / f"{rank}.pid").write_text(str(child))
        return child
    worst = 70
    try:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / f"{rank}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (open(handle, "w", 1, closefd=False) for handle in (1, 2))  # noqa: SIM115
        codes = [main(words) for words in commands]
        (folder / f"{rank}.code").write_text(" ".join(map(str, codes)))
        worst = 0 if len(commands) > 1 else codes[0]
    finally:
        os._exit(worst)


if __name__ == "__main__":
    sys.exit(launch(Path(sys.argv[1]), json.load(sys.stdin)))
