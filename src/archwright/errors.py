"""The two ways a command ends badly, what the user gave was wrong or the work itself failed; and who says so."""


class BadInput(ValueError):
    """One line with the rule, the value and the way out; the command line ends with exit code 2."""


class NothingFits(BadInput):
    """A budget that no network is small enough for."""


class Failed(RuntimeError):
    """One line on what went wrong while working and how to go on; the command line ends with exit code 1."""


class ToldElsewhere(Exception):
    """Another process of the same command has failed and says why; this one ends as it does, without a word."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error
