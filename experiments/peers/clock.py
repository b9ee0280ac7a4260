"""The clock of archwright's own trainings and searches in this process."""

import time


def use_clock(name: str) -> None:
    """With "cpu", seconds are CPU seconds of this process; call it before archwright is imported.

    Peers take their time from job.CLOCKS; archwright reads `time.monotonic` and `time.perf_counter`.
    """
    if name == "cpu":
        time.monotonic = time.perf_counter = time.process_time
