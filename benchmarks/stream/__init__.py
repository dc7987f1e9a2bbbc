"""Measures the event stream and its peers in one run: latency, fan-out, bursts, idle streams, replay, connects.

`make bench-stream` starts and stops all servers. The load generator is cheaper than any server it measures; processor time is the
kernel's account of the server's processes.
"""
