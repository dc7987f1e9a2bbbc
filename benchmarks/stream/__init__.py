"""The event stream measured beside its peers in one run: latency, fan-out, bursts, idle streams, replay, connects.

`make bench-stream` starts everything itself on servers of its own and ends it again. The load comes from a program that is
cheaper than any server it measures; processor time is the kernel's own account of the server's processes.
"""
