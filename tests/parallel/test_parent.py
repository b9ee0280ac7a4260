"""A child ends with its parent, however that ends, and whatever the child is doing."""

import signal
import subprocess
import sys
import time

import pytest

from tests.parallel.test_pool import is_running

CHILDREN = {
    "listens": "import time\ntime.sleep(600)",
    "does not listen": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)",
}
PARENT = """
import os, sys, time
from archwright.parallel.parent import ChildProcess

body = "import os, sys\\nfrom archwright.parallel.parent import end_with_parent\\nend_with_parent()\\n"
body += "print(os.getpid(), file=sys.stderr, flush=True)\\n"
child = ChildProcess([sys.executable, "-c", body + sys.argv[1]])
if sys.argv[2] == "let go":
    sys.stdin.readline()
    child.let_go()
    child.wait()
    sys.exit(0 if not child.is_running else 3)
time.sleep(600)
"""


@pytest.mark.parametrize("child", CHILDREN.values(), ids=CHILDREN)
@pytest.mark.parametrize("end", ["let go", signal.SIGKILL], ids=str)
def test_no_child_outlives_its_parent(child: str, end: str | signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, child, str(end)], text=True, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert parent.stderr
    pid = int(parent.stderr.readline())
    assert is_running(pid)
    if isinstance(end, signal.Signals):
        parent.send_signal(end)
    _, err = parent.communicate("go\n" if end == "let go" else None, timeout=200)
    assert err == ""
    assert parent.returncode == (-end if isinstance(end, signal.Signals) else 0)
    until = time.monotonic() + 100
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_running(pid)


def test_a_process_that_nobody_started_goes_on() -> None:
    code = "from archwright.parallel.parent import end_with_parent; end_with_parent(); print('still here')"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert done.stdout == "still here\n"
