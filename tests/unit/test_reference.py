"""The generated pages are those of the code."""

from yard.reference import REASONS_PAGE, reasons_page


def test_the_page_of_reasons_is_current() -> None:
    assert REASONS_PAGE.read_text() == reasons_page(), "run: make docs"
