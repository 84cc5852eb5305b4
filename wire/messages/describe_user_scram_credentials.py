"""DescribeUserScramCredentials (api key 50), version 0, flexible (KIP-554)."""

from ..schema import array, entity, int8, int16, int32, message, string


@entity
class UserName:
    """A user."""

    name: str = string()


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    """The users to describe; null or empty for all."""

    users: tuple[UserName, ...] | None = array(UserName, nullable="0+")


@entity
class CredentialInfo:
    """A credential."""

    mechanism: int = int8()
    iterations: int = int32()


@entity
class DescribeUserScramCredentialsResult:
    """The credentials of one user."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: tuple[CredentialInfo, ...] = array(CredentialInfo)


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """A row for each user."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: tuple[DescribeUserScramCredentialsResult, ...] = array(DescribeUserScramCredentialsResult)
