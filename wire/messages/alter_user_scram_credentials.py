"""AlterUserScramCredentials (api key 51), version 0, flexible (KIP-554)."""

from ..schema import array, binary, entity, int8, int16, int32, message, string


@entity
class ScramCredentialDeletion:
    """A credential to delete."""

    name: str = string()
    mechanism: int = int8()


@entity
class ScramCredentialUpsertion:
    """A credential to insert or replace."""

    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = binary()
    salted_password: bytes = binary()


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    """Changes of credentials."""

    deletions: tuple[ScramCredentialDeletion, ...] = array(ScramCredentialDeletion)
    upsertions: tuple[ScramCredentialUpsertion, ...] = array(ScramCredentialUpsertion)


@entity
class AlterUserScramCredentialsResult:
    """The result of one user."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    """A row for each user."""

    throttle_time_ms: int = int32()
    results: tuple[AlterUserScramCredentialsResult, ...] = array(AlterUserScramCredentialsResult)
