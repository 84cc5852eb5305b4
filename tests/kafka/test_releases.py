"""The table of versions by release equals `ApiKeys` in the kafka-clients of each release."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import BY_LINE, jars

from koordinator.emulator.broker.releases import ACCEPTED, ADVERTISED
from koordinator.emulator.config.settings import RELEASES
from koordinator.wire.apis import APIS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from koordinator.wire.versions import Versions

ASK_S = 60
"""Time limit to compile and run a page of Java on a busy machine."""

PROGRAM = """
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.ApiVersionsResponse;

/** What a broker advertises, and from which version on it accepts: key, oldest said, newest said, oldest. */
public class Ask {
    public static void main(String[] listener) throws Exception {
        for (Method method : ApiVersionsResponse.class.getDeclaredMethods()) {
            if (method.getName().equals("filterApis")) {
                method.setAccessible(true);
                for (Object row : (Iterable<?>) method.invoke(null, arguments(method, listener[0]))) {
                    print(ApiKeys.forId(get(row, "apiKey")), get(row, "minVersion"), get(row, "maxVersion"));
                }
                return;
            }
        }
        for (ApiKeys key : ApiKeys.values()) print(key, key.oldestVersion(), key.latestVersion());
    }

    /** By name, because releases have it in different classes. */
    static short get(Object row, String field) throws Exception {
        return (short) row.getClass().getMethod(field).invoke(row);
    }

    static void print(ApiKeys key, short oldestSaid, short newest) {
        System.out.println(key.id + " " + oldestSaid + " " + newest + " " + key.oldestVersion());
    }

    /** A listener, the newest format of records, and nothing that is not stable. */
    static Object[] arguments(Method method, String listener) {
        List<Object> arguments = new ArrayList<>();
        for (Class<?> type : method.getParameterTypes()) {
            if (type == boolean.class) {
                arguments.add(false);
                continue;
            }
            for (Object each : type.getEnumConstants()) {
                if (each.toString().equals(listener) || each.toString().equals("V2")) arguments.add(each);
            }
        }
        return arguments.toArray();
    }
}
"""


def served_here(versions: Mapping[int, Versions]) -> dict[int, tuple[int, int]]:
    return {key: (each.min, each.max) for key, each in versions.items()}


def asked(release: str, folder: Path) -> dict[int, tuple[int, int, int]]:
    """Return the oldest and the newest advertised version, and the oldest accepted one, of each API of a release."""
    source = folder / "Ask.java"
    source.write_text(PROGRAM)
    # old releases use ZooKeeper
    listener = "ZK_BROKER" if release.startswith("2.") else "BROKER"
    command = ("java", "-cp", f"{jars(BY_LINE[release].version)}/*", str(source), listener)
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ASK_S, check=False)
    assert ran.returncode == 0, ran.stderr
    rows = (map(int, line.split()) for line in ran.stdout.splitlines())
    return {key: (oldest_said, newest, oldest) for key, oldest_said, newest, oldest in rows}


@pytest.mark.parametrize("release", RELEASES)
def test_the_versions_of_a_release_are_those_it_says_itself(release: str, tmp_path: Path) -> None:
    advertised, accepted = {}, {}
    for key, (oldest_said, newest, oldest) in asked(release, tmp_path).items():
        if key in APIS:
            advertised[key] = (oldest_said, newest)
            accepted[key] = (oldest, newest)
    assert served_here(ACCEPTED[release]) == accepted
    assert served_here(ADVERTISED[release]) == advertised


def test_the_newest_release_has_no_other_api_for_clients(tmp_path: Path) -> None:
    # UnregisterController, which a broker advertises if its controllers do
    assert asked(RELEASES[-1], tmp_path).keys() - APIS.keys() == {94}


@pytest.mark.parametrize("release", RELEASES)
def test_no_version_of_a_release_is_missing_here(release: str) -> None:
    for key, versions in ACCEPTED[release].items():
        assert versions.min in APIS[key].versions
        assert versions.max in APIS[key].versions
