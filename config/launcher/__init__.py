"""The process group of a checkout: private servers, the service's own processes, and the demo around them.

Read `__main__.py` for the commands. Nothing here imports Django settings; the launcher runs before they exist.
"""
