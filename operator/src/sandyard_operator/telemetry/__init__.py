"""What the operator tells about itself: metrics with fixed label sets, and logs as JSON with a task's identity.

No label and no line carries what a user wrote. Knows the api package and ports; does no work of its own.
"""
