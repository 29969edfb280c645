"""The environment, read once."""

import pytest

from sandyard_operator.settings import Settings, SettingsError

LEAST = {"SANDYARD_NAMESPACE": "home", "SANDYARD_POD_NAME": "operator-1"}


def test_the_least_is_enough() -> None:
    settings = Settings.from_env(LEAST)
    assert (settings.namespace, settings.identity) == ("home", "operator-1")
    assert (settings.log_level, settings.metrics_port, settings.probe_port, settings.workers) == (
        "info",
        9090,
        8081,
        32,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SANDYARD_NAMESPACE", ""),
        ("SANDYARD_POD_NAME", ""),
        ("SANDYARD_LOG_LEVEL", "loud"),
        ("SANDYARD_METRICS_PORT", "0"),
        ("SANDYARD_PROBE_PORT", "65536"),
        ("SANDYARD_PROBE_PORT", "-1"),
        ("SANDYARD_WORKERS", "many"),
        ("SANDYARD_CLUSTER_CIDRS", "10.0.0.0/8,everything"),
        ("SANDYARD_OPERATOR_CIDRS", "10.0.0.1/8"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings.from_env(LEAST | {name: value})


def test_what_is_given_counts() -> None:
    settings = Settings.from_env(LEAST | {"SANDYARD_WORKERS": "4", "SANDYARD_LOG_LEVEL": "debug"})
    assert (settings.workers, settings.log_level) == (4, "debug")


def test_ranges_are_separated_by_commas() -> None:
    settings = Settings.from_env(LEAST | {"SANDYARD_CLUSTER_CIDRS": "10.0.0.0/8, 2001:db8::/64,"})
    assert settings.cluster_cidrs == ("10.0.0.0/8", "2001:db8::/64")
    assert (settings.operator_cidrs, settings.dns_namespace) == ((), "kube-system")
