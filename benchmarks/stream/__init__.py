"""Measures the event stream and the servers of other vendors in one run: latency, fan-out, bursts, idle streams, replay, connects.

`make bench-stream` starts and stops all servers. The load generator needs less processor time than any measured server. The
processor time of a server is the time that the kernel counts for its processes.
"""
