"""A live session: child processes, the sampler, and hardware counters."""
