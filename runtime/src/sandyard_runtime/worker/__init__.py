"""What runs below lock-down: the template and the run it forks.

Standard library only. Nothing in here is trusted once the first user byte has run; nothing in here decides how
a run ended.
"""
