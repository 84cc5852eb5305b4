"""docs/not-emulated.md names every API of Kafka that is not served."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import kio.schema
import pytest
from scenes.documentation import ROOT

from koordinator.wire.apis import ApiKey

PAGE = (ROOT / "docs" / "not-emulated.md").read_text(encoding="utf-8")


def kafka_apis() -> dict[int, str]:
    """Return the name of each API of Kafka's protocol, by key."""
    names = {}
    for package in (each.name for each in pkgutil.iter_modules(kio.schema.__path__, "kio.schema.") if each.ispkg):
        for version in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
            if any(each.name == "request" for each in pkgutil.iter_modules(import_module(version.name).__path__)):
                for name, kind in vars(import_module(f"{version.name}.request")).items():
                    if name.endswith("Request") and hasattr(kind, "__api_key__"):
                        names[int(kind.__api_key__)] = name.removesuffix("Request")
    return names


@pytest.mark.slow
def test_every_api_is_served_or_named() -> None:
    missing = {name for key, name in kafka_apis().items() if key not in set(ApiKey)}
    assert "Vote" in missing
    rows = PAGE.partition("## In the APIs")[0]
    assert {name for name in missing if name not in rows} == set()
