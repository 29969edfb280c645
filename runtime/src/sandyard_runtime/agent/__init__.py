"""The trusted container of a pod: answers the operator, installs wheels, holds the result.

It never opens a path of the workspace, never runs or imports what it installs, and believes nothing that
comes from the runner.
"""
