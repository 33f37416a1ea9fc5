"""`https://` as a source: read and hashed like a file, within limits, and nothing secret is kept."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import threading
import time
from types import SimpleNamespace

import pytest
from yarl import URL

from realmctl.artifacts import open_artifact, version_numbers
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, ResourceError
from realmctl.extras.remote import copying, web
from realmctl.pipeline import sources
from tests.fixtures.encoder_folders import folder_for
from tests.fixtures.web_server import WebServer, body, chunked, status, until_closed

pytest.importorskip("aiohttp")
ROWS = b'{"id": "a", "title": "Lorn", "text": "Ada Lorn was born in Harrow."}\n{"id": "b", "text": "Ben Mott works."}\n'
SECRET = "hUnTeR2"


@pytest.fixture
def server():
    with WebServer().running() as running:
        yield running


@pytest.fixture(scope="module")
def encoder(chain, tmp_path_factory):
    return folder_for(chain.blocks, tmp_path_factory.mktemp("encoders") / "encoder")


def fetched(server: WebServer, tmp_path, path: str = "/rows.jsonl") -> bytes:
    (folder := tmp_path / "copy").mkdir()
    return web.fetch(server.url + path, folder).read_bytes()


@pytest.mark.parametrize("answer", [body(ROWS), chunked([ROWS[:30], ROWS[30:]]), until_closed(ROWS)])
def test_what_an_address_names_makes_the_blocks_of_the_same_file_here(realmctl, server, tmp_path, encoder, answer):
    (local := tmp_path / "rows.jsonl").write_bytes(ROWS)
    server.answers["/data/rows.jsonl"] = answer
    for name, corpus in (("here", local), ("there", server.url + "/data/rows.jsonl")):
        code, _, err = realmctl("chunk", corpus, "--tokenizer", encoder, "--workers", 1, "-w", tmp_path / name)
        assert code == 0, err
    here, there = (open_artifact(tmp_path / name / "blocks") for name in ("here", "there"))
    assert there.manifest.recipe == here.manifest.recipe and there.content == here.content
    assert [(source.name, source.bytes) for source in there.manifest.sources["corpus"]] == [
        (server.url + "/data/rows.jsonl", len(ROWS))
    ]


def test_ids_of_files_of_one_name_are_the_same_in_each_run(realmctl, server, tmp_path, encoder):
    (tmp_path / "x.txt").write_text("Ada Lorn was born in Harrow.")
    server.answers |= {"/a/x.txt": body(b"Ben Mott works."), "/b/x.txt": body(b"Cora Nash left.")}
    sources = (server.url + "/a/x.txt", tmp_path / "x.txt", server.url + "/b/x.txt")
    code, _, err = realmctl("chunk", *sources, "--tokenizer", encoder, "--workers", 1, "-w", tmp_path / "w")
    assert code == 0, err
    assert [block.document for block in Corpus(open_artifact(tmp_path / "w/blocks"))] == [
        "1/x.txt",
        "2/x.txt",
        "3/x.txt",
    ]


def test_a_changed_file_is_noticed_and_an_unchanged_one_makes_nothing(realmctl, server, tmp_path, encoder):
    words = ("index-docs", server.url + "/rows.jsonl", "--encoder", encoder, "-w", tmp_path / "w", "--json")
    changes = []
    for rows in (ROWS, ROWS, ROWS.replace(b"Harrow", b"Ashby")):
        server.answers["/rows.jsonl"] = body(rows)
        code, out, err = realmctl(*words)
        assert code == 0, err
        changes.append(json.loads(out)["changes"])
    assert version_numbers(tmp_path / "w/blocks") == [1, 2]
    assert changes == [None, *({"changed": count, "removed": 0, "added": 0} for count in (0, 1))]
    assert "Ashby" in realmctl("search", "Ada Lorn", "-w", tmp_path / "w")[1]


def test_a_compressed_file_is_read_as_one_here_and_not_expanded_on_the_way(realmctl, server, tmp_path, encoder):
    packed = gzip.compress(ROWS, mtime=0)
    server.answers["/rows.jsonl.gz"] = body(packed)
    server.answers["/rows.jsonl"] = body(packed, Content_Encoding="gzip")
    assert fetched(server, tmp_path) == packed
    assert server.asked[-1][2]["Accept-Encoding"] == "identity"
    for name in ("rows.jsonl", "rows.jsonl.gz"):
        words = ("--tokenizer", encoder, "--workers", 1, "-w", tmp_path / name)
        assert realmctl("chunk", f"{server.url}/{name}", *words)[0] == 0
        assert open_artifact(tmp_path / name / "blocks").metrics["documents"] == 2


def test_a_redirect_within_the_web_is_followed(server, tmp_path):
    server.answers["/old"] = status(302, Location="/rows.jsonl")
    server.answers["/rows.jsonl"] = body(ROWS)
    assert fetched(server, tmp_path, "/old") == ROWS


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1", "data:,x"])
def test_a_redirect_to_what_is_not_the_web_is_refused(server, tmp_path, place):
    server.answers["/rows.jsonl"] = status(302, Location=place)
    with pytest.raises(InputError, match="redirect"):
        fetched(server, tmp_path)
    assert not any((tmp_path / "copy").iterdir())


@pytest.mark.parametrize(("place", "refused"), [("http://h/x", True), ("https://other/x", False), ("/x", False)])
def test_a_redirect_keeps_https(place, refused):
    answer = SimpleNamespace(response=SimpleNamespace(url=URL(f"https://h/a?k={SECRET}"), headers={"Location": place}))
    checked = web._check_redirect(None, None, answer)
    if refused:
        with pytest.raises(InputError, match="keeps https") as error:
            asyncio.run(checked)
        assert SECRET not in str(error.value)
    else:
        asyncio.run(checked)


def test_endless_redirects_end(server, tmp_path):
    server.answers["/rows.jsonl"] = status(302, Location="/rows.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        fetched(server, tmp_path)
    assert len(server.asked) < 20


@pytest.mark.parametrize(("code", "why"), [(404, "nothing there"), (403, "403 Forbidden"), (500, "500 Internal")])
def test_what_a_server_refuses_is_told(realmctl, server, tmp_path, code, why):
    server.answers["/rows.jsonl"] = status(code)
    left, _, err = realmctl("chunk", server.url + "/rows.jsonl", "--tokenizer", "train:100", "-w", tmp_path / "w")
    assert left == 3 and why in err and f"{server.url}/rows.jsonl" in err
    assert not (tmp_path / "w/blocks").exists()


@pytest.mark.parametrize("answer", [body(ROWS, said=len(ROWS) + 5), chunked([ROWS], ended=False)])
def test_a_body_that_is_cut_makes_nothing(realmctl, server, tmp_path, answer):
    server.answers["/rows.jsonl"] = answer
    code, _, err = realmctl("chunk", server.url + "/rows.jsonl", "--tokenizer", "train:100", "-w", tmp_path / "w")
    assert code == 3 and "cannot be read" in err and not (tmp_path / "w/blocks").exists()


@pytest.mark.parametrize("answer", [body(bytes(3 * 2**20)), chunked(itertools.repeat(bytes(2**16)))])
def test_a_body_larger_than_the_limit_is_given_up(server, tmp_path, monkeypatch, answer):
    monkeypatch.setattr(copying, "MAX_BYTES", 2**21)
    server.answers["/rows.jsonl"] = answer
    with pytest.raises(InputError, match=r"holds more than 0\.001953 GiB"):
        fetched(server, tmp_path)
    assert sum(file.stat().st_size for file in (tmp_path / "copy").iterdir()) <= 2**21


@pytest.mark.parametrize("said", [True, False])
def test_a_body_larger_than_the_disk_is_given_up(server, tmp_path, monkeypatch, said):
    monkeypatch.setattr(copying, "LOOK_BYTES", 2**20)
    monkeypatch.setattr(copying.shutil, "disk_usage", lambda _: SimpleNamespace(free=2**30 + 2**20))
    monkeypatch.setattr(copying, "MIN_FREE_BYTES", 2**30 if said else 2**30 + 2**20 + 1)
    server.answers["/rows.jsonl"] = body(bytes(2**21)) if said else chunked(itertools.repeat(bytes(2**16)))
    with pytest.raises(ResourceError, match="Set TMPDIR to a larger disk"):
        fetched(server, tmp_path)


def test_a_server_that_falls_silent_or_is_too_slow_is_given_up(server, tmp_path, monkeypatch):
    stop = threading.Event()

    def slow():
        while not stop.wait(0.01):
            yield b"x"

    def silent():
        yield b"x"
        stop.wait(5)

    begin = time.monotonic()
    server.answers |= {"/slow": chunked(slow()), "/silent": chunked(silent())}
    monkeypatch.setattr(copying, "PATIENCE", 0.1)
    monkeypatch.setattr(web, "SECONDS_OF_SILENCE", 0.2)
    for path, why in (("/slow", "is given up"), ("/silent", "cannot be read")):
        with pytest.raises(InputError, match=why):
            web.fetch(server.url + path, tmp_path)
    stop.set()
    assert time.monotonic() - begin < 3


def test_a_host_that_does_not_answer_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        web.fetch("http://127.0.0.1:1/rows.jsonl", tmp_path)
    with pytest.raises(InputError, match="no host"):
        web.fetch("https:///rows.jsonl", tmp_path)


@pytest.mark.parametrize("good", [True, False])
def test_no_secret_of_an_address_is_kept_or_printed(realmctl, server, tmp_path, encoder, good):
    rows = ROWS if good else b'{"id": "a", "text": "Ada."}\nno JSON\n'
    server.answers["/rows.jsonl"] = body(rows)
    address = server.url.replace("//", f"//ada:{SECRET}@") + f"/rows.jsonl?X-Signature={SECRET}&user=1"
    words = ("--encoder", encoder, "-w", tmp_path / "w")
    code, out, err = realmctl("index-docs", address, *words)
    _, path, headers = server.asked[-1]
    assert path == f"/rows.jsonl?X-Signature={SECRET}&user=1" and headers["Authorization"].startswith("Basic ")
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert SECRET not in out + err and not any(SECRET.encode() in file.read_bytes() for file in kept)
    if good:
        name = open_artifact(tmp_path / "w/blocks").manifest.sources["corpus"][0].name
        assert code == 0 and name == f"{server.url}/rows.jsonl?…"
    else:
        assert code == 3 and f"{server.url}/rows.jsonl?…:2: not valid JSON" in err


def test_without_the_package_the_line_to_type_is_told(realmctl, monkeypatch, tmp_path):
    found = copying.__spec__
    real = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *rest: None if name == "aiohttp" else real(name, *rest)
    )
    assert found is not None
    code, _, err = realmctl("chunk", "https://example.org/x", "-w", tmp_path / "w")
    assert code == 5 and "pip install 'realmctl[remote]'" in err


@pytest.mark.parametrize("address", ["ftp://h/x", "file:///etc/passwd", "gs://b/x", "memory://x"])
def test_other_kinds_of_addresses_are_refused(realmctl, tmp_path, address):
    code, _, err = realmctl("chunk", address, "-w", tmp_path / "w")
    assert code == 2 and "https:// or http:// or s3:// or hf://" in err


def test_an_address_stands_where_a_source_does_alone(tmp_path):
    with pytest.raises(ConfigError, match="an address is not read here"):
        sources.localise("https://u:p@h/x", (), True, "--encoder")
    (tmp_path / "s3:").mkdir()
    assert sources.address_of(tmp_path / "s3:") == sources.address_of("C:/x") == sources.address_of("a:b") == ""


def test_other_sources_may_be_addresses_too(realmctl, server, tmp_path):
    server.answers["/q.jsonl"] = body(b"".join(b'{"question": "Who %d?", "answer": ["Ada"]}\n' % n for n in range(9)))
    code, _, err = realmctl("split", server.url + "/q.jsonl", "--train", tmp_path / "t", "--dev", tmp_path / "d")
    assert code == 0, err
    assert sum(len((tmp_path / name).read_text().splitlines()) for name in "td") == 9


@pytest.mark.parametrize(
    ("path", "name"),
    [("/a/b%20c.txt", "b c.txt"), ("/a/..%2Fx", "_x"), ("/", "index"), ("/a/", "a"), ("/%00", "index")],
)
def test_a_copy_has_the_name_of_the_file_and_never_leads_elsewhere(path, name):
    assert copying.file_name(path, "index") == name


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\0b", ""])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="no name here"):
        copying.Copies("s3://b", tmp_path / "b").tree({name: 1}, lambda _: [b"x"])


def test_a_name_that_is_a_file_and_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="as a file and as a folder"):
        copying.Copies("s3://b", tmp_path / "b").tree({"a": 1, "a/b": 1}, lambda _: [b"x"])
