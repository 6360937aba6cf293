"""Tests of storage run on a local disk and on a real S3 server."""

from s3_server import any_storage, bucket, s3

__all__ = ["any_storage", "bucket", "s3"]
