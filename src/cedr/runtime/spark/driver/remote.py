"""Remote storage as Spark and cedr share it: the settings of one are those of the other."""

from typing import Any

from pyspark.sql import SparkSession

from cedr.storage import remote_settings
from cedr.storage.remote import SCHEME, for_spark
from cedr.storage.remote_settings import S3_ENVIRONMENT, S3_NAMES, RemoteSettings
from cedr.temporal.errors import CedrError

CONNECTORS = {
    "s3a": "set spark.jars.packages to org.apache.hadoop:hadoop-aws:{}",
    "gs": "add Google's connector gcs-connector-hadoop3 to spark.jars",
    "abfss": "set spark.jars.packages to org.apache.hadoop:hadoop-azure:{}",
}


def share_settings(spark: SparkSession) -> RemoteSettings:
    """Spark's settings of remote stores, which from now on apply to this process, and with its job to others. What only
    the environment has, Spark gets as well."""
    hadoop = hadoop_settings(spark)
    for key, value in only_in_environment(hadoop).items():
        hadoop.set(key, value)
    found: dict[str, str] = {}
    for prefix in remote_settings.PREFIXES:
        values = hadoop.getPropsWithPrefix(prefix)
        found |= {f"{prefix}{name}": str(values[name]) for name in values if remote_settings.is_used(f"{prefix}{name}")}
    return remote_settings.use(found)


def hadoop_settings(spark: SparkSession) -> Any:
    java: Any = spark.sparkContext
    return java._jsc.hadoopConfiguration()


def only_in_environment(hadoop: Any) -> dict[str, str]:
    """Settings of S3 under Hadoop's names. Without the key the secret does not count."""
    names = {**{name: key for key, name in S3_NAMES.items()}, "endpoint": "endpoint"}
    missing = [name for name, key in names.items() if not hadoop.get(f"fs.s3a.{key}")]
    if "access_key_id" not in missing:
        missing = [name for name in missing if name not in remote_settings.KEYS]
    found = {f"fs.s3a.{names[n]}": v for n in missing if (v := remote_settings.of_environment(S3_ENVIRONMENT[n]))}
    if ".amazonaws." not in found.get("fs.s3a.endpoint", ".amazonaws."):
        found["fs.s3a.path.style.access"] = "true"  # other stores seldom have a name for each bucket
    return found


def check_connector(spark: SparkSession, place: str) -> None:
    """Raise if Spark does not know such a place."""
    named = SCHEME.match(for_spark(place))
    if named is None:
        return
    context: Any = spark.sparkContext
    try:
        context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(named[1], hadoop_settings(spark))
    except Exception:
        version = context._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
        how = CONNECTORS.get(named[1], "add its connector to spark.jars").format(version)
        raise CedrError(
            f"Spark has no connector for {named[0]}, so it cannot keep its part of a checkpoint there; {how} when you "
            "start the session"
        ) from None
