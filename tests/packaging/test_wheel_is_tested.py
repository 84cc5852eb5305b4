"""`make test` tests the installed package, not the working tree."""

from __future__ import annotations

import os
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

import koordinator
import koordinator.emulator
import koordinator.fixtures
import koordinator.wire

installed = pytest.mark.skipif("KOORDINATOR_WHEEL" not in os.environ, reason="not a run of the wheel")


@installed
@pytest.mark.parametrize(
    "package", [koordinator, koordinator.emulator, koordinator.fixtures, koordinator.wire], ids=lambda p: p.__name__
)
def test_the_packages_under_test_come_from_site_packages(package: object) -> None:
    home = Path(sysconfig.get_paths()["purelib"]).resolve()
    assert home in Path(str(vars(package)["__file__"])).resolve().parents


@installed
def test_the_version_is_declared_once(wheel: Path) -> None:
    assert koordinator.__version__ == version("koordinator")
    assert wheel.name == f"koordinator-{koordinator.__version__}-py3-none-any.whl"


def test_the_public_names_are_those_listed() -> None:
    for name in koordinator.__all__:
        assert getattr(koordinator, name) is not None
    assert set(koordinator.__all__) <= set(dir(koordinator))
    assert koordinator.Emulator.__module__ == "koordinator.handles.emulator"
    with pytest.raises(AttributeError, match="module 'koordinator' has no attribute 'Broker'"):
        _ = koordinator.Broker
