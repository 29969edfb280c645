"""PID 1 of the runner container: forks the template, owns the run's pipes, tells its end, kills what is left.

Standard library only, never a package, never a user's byte but as data. The truth of a run is what waitid and
the kernel's counters say.
"""
