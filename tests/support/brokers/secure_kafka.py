"""A running Apache Kafka with listeners that demand SASL."""

from __future__ import annotations

from brokers.real_kafka import RealKafka, free_ports

USERS = {"alice": "alice-secret", "bob": "bob-secret"}

MODULES = "org.apache.kafka.common.security"

JAAS = {
    "plain": "plain.PlainLoginModule required " + " ".join(f'user_{name}="{word}"' for name, word in USERS.items()),
    "scram-sha-256": "scram.ScramLoginModule required",
    "scram-sha-512": "scram.ScramLoginModule required",
    "oauthbearer": 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker"',
}

MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"


class SecureKafka(RealKafka):
    """A broker with the further listeners SASL and REAUTH; their ports are `ports`."""

    def _kraft(self) -> dict[str, str]:
        self.ports = free_ports()
        own = super()._kraft()
        more = ",".join(f"{name}://127.0.0.1:{port}" for name, port in zip(("SASL", "REAUTH"), self.ports, strict=True))
        listeners = {"listeners": f"{own['listeners']},{more}"}
        jaas = {
            f"listener.name.{name}.{mechanism}.sasl.jaas.config": f"{MODULES}.{text};"
            for name in ("sasl", "reauth")
            for mechanism, text in JAAS.items()
        }
        return own | listeners | jaas
