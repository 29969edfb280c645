"""Dependency strings and version rules: the table of cases, and a class's own rules."""

import pytest

from sandyard_api.reasons import Reason
from sandyard_api.requirements import (
    check_allowed,
    python_satisfies,
    read_dependencies,
    read_dependency,
    read_requires_python,
)
from sandyard_api.script_error import ScriptError


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("pandas", "pandas"),
        ("Pandas", "Pandas"),
        ("3to2", "3to2"),
        ("p", "p"),
        ("a..b", "a..b"),
        ("pandas>=2,<3", "pandas<3,>=2"),
        ("six==1.17.0", "six==1.17.0"),
        ("pkg ==1.0", "pkg==1.0"),
        ("pkg==1.*", "pkg==1.*"),
        ("pkg==1!2.0", "pkg==1!2.0"),
        ("pkg==1.0+local", "pkg==1.0+local"),
        ("pandas[excel]>=2", "pandas[excel]>=2"),
        ("pandas [excel]", "pandas[excel]"),
        ("pandas[a, b]", "pandas[a,b]"),
        ("pandas (>=2)", "pandas>=2"),
        ("pkg>=1,", "pkg>=1"),
        ("pkg[]", "pkg"),
        (" pkg", "pkg"),
        ("pkg==1.0 ", "pkg==1.0"),
        ("whl", "whl"),
        ("zip.files", "zip.files"),
        ("a" * 300, "a" * 300),
    ],
)
def test_a_requirement_is_normalised(text: str, normal: str) -> None:
    assert read_dependency(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "???",
        "pkg===1.0",
        "pkg=1.0",
        "pkg=>1",
        "pkg<>1",
        "pkg!1",
        "pkg~1.0",
        "pkg==abc",
        "pkg[,]",
        "pkg-",
        "pkg.",
        "pkg~=1",
        "pkg~=1.*",
        "pkg>=1.*",
        "pkg>=1.0+local",
        "pkg\n>=1",
        "pkg\x00",
        "pkg @ https://example.invalid/pkg.whl",
        "pkg@https://example.invalid/pkg.whl",
        "pkg @ file:///etc/passwd",
        "pkg @ git+https://example.invalid/pkg",
        "git+https://example.invalid/pkg",
        "./x",
        "../x",
        "/abs",
        "x/y",
        "pkg; python_version>'3'",
        "-r x",
        "--index-url=x",
        "-e x",
        "pkg==1 --hash=sha256:00",
        "pkg # c",
        "$(id)",
        "pkg>=1 <2",
        "пакет",
        "foo.whl",
        "foo-1.0-py3-none-any.whl",
        "foo.zip",
        "foo.tar",
        "foo.tgz",
        "foo.tar.gz",
        "foo.tar.bz2",
        "FOO.Tar.XZ",
        "foo.WHL",
        "foo.whl[a]",
        "a" * 301,
    ],
)
def test_what_is_no_name_on_the_index_is_refused(text: str) -> None:
    with pytest.raises(ScriptError) as caught:
        read_dependency(text)
    assert caught.value.reason is Reason.INVALID_DEPENDENCY
    assert caught.value.hint
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


def test_too_many_dependencies_are_refused_before_any_is_read() -> None:
    with pytest.raises(ScriptError) as caught:
        read_dependencies(["???"] * 21)
    assert caught.value.reason is Reason.LIMIT_EXCEEDED


@pytest.mark.parametrize("text", [">=3.8", ">= 3.8", "~=3.10", "==3.*", "!=3.9.*", ">3,", "", ","])
def test_a_requires_python_is_read_and_satisfied(text: str) -> None:
    assert python_satisfies(read_requires_python(text), "3.13.5")


@pytest.mark.parametrize("text", ["3.11", "~=3", ">=3.*", "abc", "*", ">=" + "9" * 5000])
def test_a_malformed_requires_python_is_an_invalid_script(text: str) -> None:
    with pytest.raises(ScriptError, match="requires-python") as caught:
        read_requires_python(text)
    assert caught.value.reason is Reason.INVALID_SCRIPT


def test_row_40_a_python_that_does_not_exist_satisfies_nothing() -> None:
    assert not python_satisfies(read_requires_python(">=3.99"), "3.13.5")


def test_no_requires_python_means_any() -> None:
    assert python_satisfies(None, "3.13.5")


def test_a_pre_release_of_python_counts() -> None:
    assert python_satisfies(">=3.14.0a1", "3.14.0rc2")


def check(dependency: str, *, allow: str = "", deny: str = "", require_hashes: bool = False) -> None:
    check_allowed([dependency], allow=allow.split(), deny=deny.split(), require_hashes=require_hashes)


@pytest.mark.parametrize(
    ("dependency", "allow", "deny", "word"),
    [
        ("Evil_Pkg", "", "evil-pkg", "denied"),
        ("evil.tools>=1", "", "evil-*", "denied"),
        ("evil-pkg", "*", "evil-*", "denied"),
        ("numpy", "pandas", "", "allows"),
        ("pandas-stubs", "pandas", "", "allows"),
    ],
)
def test_a_class_refuses_names(dependency: str, allow: str, deny: str, word: str) -> None:
    with pytest.raises(ScriptError, match=word) as caught:
        check(dependency, allow=allow, deny=deny)
    assert caught.value.reason is Reason.INVALID_DEPENDENCY
    assert dependency in str(caught.value)


@pytest.mark.parametrize(
    ("dependency", "allow", "deny"),
    [
        ("anything", "", ""),
        ("Pandas[excel]>=2", "pandas", ""),
        ("pandas-stubs", "numpy pandas*", ""),
        ("numpy", "", "pandas"),
    ],
)
def test_a_class_allows_names(dependency: str, allow: str, deny: str) -> None:
    check(dependency, allow=allow, deny=deny)


@pytest.mark.parametrize("dependency", ["six", "six>=1", "six==1.*"])
def test_a_class_that_requires_hashes_refuses_what_pins_no_version(dependency: str) -> None:
    with pytest.raises(ScriptError, match="six==<version>"):
        check(dependency, require_hashes=True)


@pytest.mark.parametrize("dependency", ["six==1.17.0", "six<2,==1.17.0"])
def test_a_class_that_requires_hashes_allows_what_pins_a_version(dependency: str) -> None:
    check(dependency, require_hashes=True)
