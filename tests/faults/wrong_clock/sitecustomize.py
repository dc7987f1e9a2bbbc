"""Sets the clock of a Python process before its program starts, if this folder is on the path of modules."""

import datetime
import os

import time_machine

if hours := os.environ.get("CLOCK_HOURS"):
    time_machine.travel(datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=int(hours))).start()
