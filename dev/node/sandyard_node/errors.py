"""The one error of this package."""


class NodeError(Exception):
    """What happened and why, with the next thing to do."""

    def __init__(self, what: str, *, fix: str = "") -> None:
        super().__init__(f"{what}\n  next: {fix}" if fix else what)
