"""`s3://` as a source, against the server of moto (`make clients`)."""

from __future__ import annotations

import pytest

from realmctl.artifacts import open_artifact
from realmctl.errors import InputError
from realmctl.extras.remote import copying, s3

pytest.importorskip("s3fs")
pytest.importorskip("moto.server", reason="moto is not installed")
DOCUMENTS = {"a.md": b"# Lorn\n\nAda Lorn was born in Harrow.\n", "deep/b.txt": b"Ben Mott works for a firm.\n"}


@pytest.fixture(scope="module")
def service():
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def bucket(service, monkeypatch):
    import botocore.session

    for name, value in {
        "ENDPOINT_URL": service,
        "DEFAULT_REGION": "us-east-1",
        "EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "hUnTeR2")
    client = botocore.session.Session().create_client("s3")
    client.create_bucket(Bucket="notes")
    for name, data in DOCUMENTS.items():
        client.put_object(Bucket="notes", Key=f"docs/{name}", Body=data)
    client.put_object(Bucket="notes", Key="docs/", Body=b"")
    yield client
    for entry in client.list_objects_v2(Bucket="notes")["Contents"]:
        client.delete_object(Bucket="notes", Key=entry["Key"])
    client.delete_bucket(Bucket="notes")


def test_a_prefix_makes_the_blocks_of_the_same_folder_here(realmctl, bucket, tmp_path):
    for name, data in DOCUMENTS.items():
        (path := tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name, corpus in (("here", tmp_path / "docs"), ("there", "s3://notes/docs/")):
        code, out, err = realmctl("chunk", corpus, "--tokenizer", "train:100", "--workers", 1, "-w", tmp_path / name)
        assert code == 0 and "hUnTeR2" not in out + err, err
    here, there = (open_artifact(tmp_path / name / "blocks") for name in ("here", "there"))
    assert there.content == here.content and there.manifest.recipe == here.manifest.recipe
    assert [source.name for source in there.manifest.sources["corpus"]] == ["s3://notes/docs"]
    bucket.put_object(Bucket="notes", Key="docs/a.md", Body=b"# Lorn\n\nAda Lorn left.\n")
    code, _, err = realmctl(
        "chunk", "s3://notes/docs", "--tokenizer", "train:100", "--workers", 1, "-w", tmp_path / "there"
    )
    assert code == 0 and open_artifact(tmp_path / "there/blocks").content != here.content, err


def test_an_object_is_copied_whatever_its_length(bucket, tmp_path, monkeypatch):
    data = bytes(range(256)) * 2**16  # several parts of 8 MiB
    bucket.put_object(Bucket="notes", Key="big #1.bin", Body=data)
    assert s3.fetch("s3://notes/big #1.bin", tmp_path).read_bytes() == data
    monkeypatch.setattr(copying, "MAX_BYTES", 2**20)
    (tmp_path / "again").mkdir()
    with pytest.raises(InputError, match="no more is copied"):
        s3.fetch("s3://notes/big #1.bin", tmp_path / "again")
    assert not any((tmp_path / "again").iterdir())


def test_a_key_that_leads_out_of_the_folder_is_refused(bucket, tmp_path):
    bucket.put_object(Bucket="notes", Key="docs/../../etc/x", Body=b"x")
    with pytest.raises(InputError, match="no name here"):
        s3.fetch("s3://notes/docs", tmp_path)


@pytest.mark.parametrize("address", ["s3://none/x", "s3://notes/none", "s3://notes/docs/none.md"])
def test_what_is_not_there_is_told(realmctl, bucket, tmp_path, address):
    code, _, err = realmctl("chunk", address, "--tokenizer", "train:100", "-w", tmp_path / "w")
    assert code == 3 and address in err and "AWS_ENDPOINT_URL" in err and "hUnTeR2" not in err


def test_without_keys_a_bucket_is_asked_as_anybody(bucket, tmp_path, monkeypatch):
    bucket.put_object(Bucket="notes", Key="public.md", Body=b"Ada.", ACL="public-read")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert s3.fetch("s3://notes/public.md", tmp_path).read_bytes() == b"Ada."
    with pytest.raises(InputError, match="Forbidden"):
        s3.fetch("s3://notes/docs/a.md", tmp_path)


def test_a_service_that_does_not_answer_is_told(bucket, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(InputError, match="cannot be read"):
        s3.fetch("s3://notes/docs/a.md", tmp_path)
