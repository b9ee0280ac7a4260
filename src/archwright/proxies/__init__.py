"""Training-free proxies: pure functions of a probe, higher is better. One list feeds code, help, tests and page."""
