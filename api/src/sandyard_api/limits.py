"""The bounds: sizes in bytes, counts, seconds. A class's defaults, and what no class can go beyond.

They stand here once, for the schemas, the PEP 723 reader and the tests. Constants only.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Defaults of SandboxClass.spec.limits.
CODE_BYTES: Final = 256 * KIB
STDIN_BYTES: Final = 10 * MIB
STDOUT_BYTES: Final = 1 * MIB
STDERR_BYTES: Final = 256 * KIB
METADATA_BYTES: Final = 8 * KIB
ARTIFACT_BYTES: Final = 100 * MIB
STATE_BYTES: Final = "5Gi"
OPEN_FILES: Final = 4096
PROCESSES: Final = 256

# What a field holds at most, whatever the class says.
CODE_FIELD_BYTES: Final = 256 * KIB  # inline; with standard input and env it stays below etcd's 1.5 MiB
STDIN_FIELD_BYTES: Final = 128 * KIB
ENV_BYTES: Final = 32 * KIB  # names and values of one task together
CONFIG_MAP_BYTES: Final = 1 * MIB  # Kubernetes' own bound for one ConfigMap
MAX_STREAM_BYTES: Final = 64 * MIB  # a class may keep this much of one stream
MAX_FIELD_COUNT: Final = 64  # args, env, files
MAX_ARGUMENT_CHARACTERS: Final = 4096  # PATH_MAX: an argument is a word or a path, not a document

# Dependencies.
DEPENDENCIES: Final = 20  # of one script, by default
MAX_DEPENDENCIES: Final = 256  # a class may raise it to this
DEPENDENCY_CHARACTERS: Final = 300  # of one item

# Kubernetes' own.
NAME_CHARACTERS: Final = 253  # an object's name, a DNS subdomain
LABEL_CHARACTERS: Final = 63  # a label's value; a class's name becomes one
MESSAGE_CHARACTERS: Final = 32 * KIB  # a condition's message
REASON_CHARACTERS: Final = 1 * KIB  # a condition's reason

# Status.
TRACEBACK_BYTES: Final = 4 * KIB  # the tail that status keeps
ARTIFACTS: Final = 256
PACKAGES: Final = 1024
WARNINGS: Final = 256
MAX_SECONDS: Final = 2**31 - 1  # 68 years, an int32 as Kubernetes' own seconds are
