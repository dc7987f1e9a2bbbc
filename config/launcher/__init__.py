"""The process group of a checkout: private servers, the processes of the service, and the demo.

`__main__.py` has the commands. No module of this package imports the Django settings, because the launcher first creates the environment
variables that the settings read.
"""
