"""Stands for Lambda: calls the function once, at an instant (seconds since the epoch) that has passed, and ends it after Lambda's default timeout of three seconds."""

import datetime
import signal
import sys

TIMEOUT = 3


class Clock(datetime.datetime):
    """The wall clock of the function. It has the local time zone, as the real one."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(float(sys.argv[1]), tz)


datetime.datetime = Clock

import published

signal.alarm(TIMEOUT)  # ends the process; loading the modules does not count, as in Lambda
published.lambda_handler({}, None)
