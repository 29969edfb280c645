"""The operator: watches SandboxTasks and carries each through, once."""
