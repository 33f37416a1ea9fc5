"""Objects of S3 and its kin by `s3://bucket/key`: one object, or all below a prefix.

Keys, region and endpoint come from where AWS's own tools take them, such as AWS_ACCESS_KEY_ID, AWS_PROFILE and AWS_ENDPOINT_URL. Without keys the
bucket is asked as anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from realmctl.errors import require_package
from realmctl.extras.remote.copying import Copies, file_name, pieces_of, told
from realmctl.pipeline.sources import Remote

ADVICE = (
    "Check the address, the keys (AWS_ACCESS_KEY_ID, AWS_PROFILE), and AWS_ENDPOINT_URL for another service than AWS."
)


def fetch(address: str, folder: Path) -> Path:
    """Copy an object, or all objects below a prefix, into a folder."""
    name = _shown(address)
    require_package("s3fs", "remote", f"reading {name}")
    from botocore.session import Session
    from s3fs import S3FileSystem

    with told(name, ADVICE):
        bucket = S3FileSystem(
            anon=Session().get_credentials() is None,
            config_kwargs={"connect_timeout": 30, "read_timeout": 60, "retries": {"max_attempts": 3}},
            skip_instance_cache=True,
            use_listings_cache=False,
        )
        place = address.removeprefix("s3://").rstrip("/")
        entry = bucket.info(place)
        copies = Copies(name, folder)

        def pieces(key: str) -> Iterator[bytes]:
            yield from pieces_of(bucket.open(key, "rb", block_size=8 * 2**20))

        if entry["type"] == "file":
            return copies.file(file_name(place, "object"), pieces(place), entry["size"])
        found = {
            key.removeprefix(f"{place}/"): entry["size"]
            for key, entry in bucket.find(place, detail=True).items()
            if entry["type"] == "file" and not key.endswith("/")
        }
        copies.folder /= file_name(place, "objects")
        return copies.tree(found, lambda key: pieces(f"{place}/{key}"))


def _shown(address: str) -> str:
    """Return an address without a key that some programs write before the bucket."""
    bucket, slash, key = address.removeprefix("s3://").partition("/")
    return f"s3://{bucket.rpartition('@')[2]}{slash}{key}"


S3 = Remote(fetch, _shown)
