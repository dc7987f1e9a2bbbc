"""The process group of a checkout: private servers, the processes of the service, and the demo.

`__main__.py` has the commands. No module imports Django settings, because the launcher runs before they exist.
"""
