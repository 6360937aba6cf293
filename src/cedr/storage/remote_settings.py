"""Where remote stores are, and who may enter: Spark's settings under Hadoop's names, or the environment.

Spark's settings come first, since they are those with which Spark itself reaches the store; what they lack is taken
from the environment (`AWS_ACCESS_KEY_ID` and so on), and at last from the machine. The settings of a driver travel with
the job, as its functions do, and apply to each process that opens it: tasks, planners and shards. They are in no file
of a checkpoint, and are never printed.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

from cedr.secret import Secret, is_secret_name

PREFIXES = ("fs.s3a.", "fs.gs.", "google.cloud.", "fs.azure.")
S3_NAMES = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
S3_ENVIRONMENT = {
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
}
KEYS = ("access_key_id", "secret_access_key", "session_token")
"""Belong together: a key of one origin does not fit the secret of another."""
GS_KEY_FILES = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
AZURE_NAMES = {
    "fs.azure.account.key": "account_key",
    "fs.azure.sas.fixed.token": "sas_key",
    "fs.azure.account.oauth2.client.id": "client_id",
    "fs.azure.account.oauth2.client.secret": "client_secret",
}


USED = re.compile(
    r"fs\.s3a\.(bucket\..+\.)?(access\.key|secret\.key|session\.token|endpoint|endpoint\.region|path\.style\.access"
    r"|connection\.ssl\.enabled|aws\.credentials\.provider)"
    rf"|{'|'.join(map(re.escape, GS_KEY_FILES))}|({'|'.join(map(re.escape, AZURE_NAMES))})(\..+)?"
    r"|fs\.azure\.account\.oauth2\.client\.endpoint(\..+)?"
)


def is_used(name: str) -> bool:
    """Whether a setting of Hadoop means something here."""
    return USED.fullmatch(name) is not None


def of_spark(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings among those of a session that is still to be started."""
    found = {
        name.removeprefix("spark.hadoop."): value for name, value in conf.items() if name.startswith("spark.hadoop.")
    }
    return {name: value for name, value in found.items() if is_used(name)}


class RemoteSettings:
    """Settings under Hadoop's names. Unpickled, they apply to the process."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = dict(values)
        for name, value in self.values.items():
            if is_secret_name(name):
                Secret(value)  # errors do not show it

    def __repr__(self) -> str:
        return f"RemoteSettings({', '.join(sorted(self.values))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteSettings) and self.values == other.values

    def __hash__(self) -> int:
        return hash(frozenset(self.values.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return use, (self.values,)

    def s3(self, bucket: str) -> dict[str, Any]:
        """What obstore is given; a setting for one bucket precedes that for all."""
        found = {name: value for key, name in S3_NAMES.items() if (value := self._s3(bucket, key))}
        if endpoint := self._s3(bucket, "endpoint"):
            plain = self._s3(bucket, "connection.ssl.enabled") == "false"
            found["endpoint"] = endpoint if "://" in endpoint else f"http{'' if plain else 's'}://{endpoint}"
        names = [name for name in S3_ENVIRONMENT if name not in found]
        if "access_key_id" in found:
            names = [name for name in names if name not in KEYS]
        found |= {name: value for name in names if (value := of_environment(S3_ENVIRONMENT[name]))}
        for name in KEYS[1:]:
            Secret(found.get(name, ""))
        if (
            "endpoint" in found
            and self._s3(bucket, "path.style.access") != "true"
            and ".amazonaws." in found["endpoint"]
        ):
            del found["endpoint"]  # it follows from the region, with the bucket in its name
        if "AnonymousAWSCredentialsProvider" in (self._s3(bucket, "aws.credentials.provider") or ""):
            return {**found, "skip_signature": True}
        return found

    def _s3(self, bucket: str, name: str) -> str | None:
        value = self.values.get(f"fs.s3a.bucket.{bucket}.{name}") or self.values.get(f"fs.s3a.{name}")
        return value.strip() if value else None

    def gs(self) -> dict[str, Any]:
        file = next((self.values[name] for name in GS_KEY_FILES if self.values.get(name)), None)
        return {"service_account": file} if file else {}

    def azure(self, account: str, container: str) -> dict[str, Any]:
        found: dict[str, Any] = {"account_name": account}
        host = f"{account}.dfs.core.windows.net"
        for key, name in AZURE_NAMES.items():
            places = (f"{key}.{container}.{host}", f"{key}.{host}", key)
            if value := next((self.values[place] for place in places if self.values.get(place)), None):
                found[name] = value
        tenant = next(
            (v for k, v in self.values.items() if k.startswith("fs.azure.account.oauth2.client.endpoint")), ""
        )
        if tenant.startswith("https://login."):
            found["tenant_id"] = tenant.split("/")[3]
        return found


def of_environment(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


applied = [RemoteSettings({})]
"""All that this process has had; the last ones count."""


def current() -> RemoteSettings:
    """Those of this process."""
    return applied[-1]


def version() -> int:
    """How often they have changed."""
    return len(applied)


def use(values: Mapping[str, str]) -> RemoteSettings:
    """From now on these apply to this process."""
    settings = RemoteSettings(values)
    if settings != current():
        applied.append(settings)
    return settings
