#!/usr/bin/env python
"""Django's command line."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")
    from config import collector

    collector.rest()
    from django.core.management import execute_from_command_line

    from foundation.acting import act_of_command, acting

    # Changes by a command are in the audit log, like changes in the admin.
    with acting(act_of_command(sys.argv)):
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
