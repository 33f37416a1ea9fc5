"""`hf://` as a source, on a stand-in of the hub: files, folders, and the rows of a data set by split and columns."""

from __future__ import annotations

import hashlib
import io
import json
import re
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

import huggingface_hub.constants
import pytest

from realmctl.artifacts import open_artifact
from realmctl.errors import InputError
from realmctl.extras.remote import copying, hub
from tests.fixtures.encoder_folders import folder_for
from tests.fixtures.web_server import WebServer, body, status

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402

ROWS = [
    {
        "id": str(n),
        "title": f"T{n}",
        "text": f"Ada number {n} was born in Harrow.",
        "year": 1900 + n,
        "image": b"x" * 2000,
    }
    for n in range(300)
]
SHAS = {"main": "a" * 40, "refs/convert/parquet": "b" * 40}


def parquet(rows: list[dict[str, object]]) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), out, row_group_size=100, compression="none")
    return out.getvalue()


class Hub:
    """What huggingface_hub asks of the hub, over {repository: {revision: {path: bytes}}}."""

    def __init__(self, server: WebServer, repositories: dict[str, dict[str, dict[str, bytes]]]) -> None:
        self.server, self.repositories, self.sent = server, repositories, 0
        server.answers = _Any(self.answer)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        if match := re.fullmatch(r"/api/(datasets/o/\w+|models/o/\w+)(?:/revision/(.+))?", path):
            revision = self.revision(match[1].removeprefix("models/"), unquote(match[2] or "main"))
            found = {"id": "o/n", "_id": "1", "sha": revision and SHAS[revision], "siblings": [], "tags": []}
            return (self.json(found) if revision else status(404, X_Error_Code="RevisionNotFound"))(request)
        if match := re.fullmatch(r"/api/(datasets/o/\w+|models/o/\w+)/tree/([^/]+)(?:/(.*))?", path):
            files = self.files(match[1].removeprefix("models/"), match[2])
            return self.json(_listing(files, unquote(match[3] or ""), "recursive=true" in request.path.lower()))(
                request
            )
        if match := re.fullmatch(r"/(datasets/o/\w+|o/\w+)/resolve/([^/]+)/(.*)", path):
            data = self.files(match[1], match[2]).get(unquote(match[3]))
            return status(404, X_Error_Code="EntryNotFound")(request) if data is None else self.part(data)(request)
        return status(404)(request)

    def revision(self, repository: str, asked: str) -> str | None:
        known = self.repositories.get(repository, {})
        return next((name for name in known if asked in (name, SHAS[name])), None)

    def files(self, repository: str, asked: str) -> dict[str, bytes]:
        name = self.revision(repository, unquote(asked))
        return self.repositories[repository][name] if name else {}

    def json(self, found: object):
        return body(json.dumps(found).encode(), Content_Type="application/json")

    def part(self, data: bytes):
        def answer(request: BaseHTTPRequestHandler) -> None:
            wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
            first, last = (int(wanted[1]), int(wanted[2] or len(data) - 1)) if wanted else (0, len(data) - 1)
            piece = data[first : last + 1]
            self.sent += len(piece) if request.command == "GET" else 0
            said = {"Content_Range": f"bytes {first}-{first + len(piece) - 1}/{len(data)}"} if wanted else {}
            body(piece, code=206 if wanted else 200, ETag=f'"{hashlib.sha1(data).hexdigest()}"', **said)(request)

        return answer


class _Any(dict):
    def __init__(self, answer) -> None:
        self._answer = answer

    def get(self, _, __=None):
        return self._answer


def _listing(files: dict[str, bytes], below: str, recursive: bool) -> list[dict[str, object]]:
    prefix = f"{below}/" if below else ""
    entries: dict[str, dict[str, object]] = {}
    for path, data in files.items():
        if path.startswith(prefix):
            rest = path.removeprefix(prefix)
            for folder in [rest[: place.start()] for place in re.finditer("/", rest)][: None if recursive else 1]:
                entries[prefix + folder] = {"type": "directory", "path": prefix + folder, "oid": "x", "size": 0}
            if recursive or "/" not in rest:
                entries[path] = {"type": "file", "path": path, "oid": "y", "size": len(data)}
    return [*entries.values()]


@pytest.fixture(scope="module")
def shards():
    return {
        "README.md": b"# About",
        "data/train-00000-of-00002.parquet": parquet(ROWS[:200]),
        "data/train-00001-of-00002.parquet": parquet(ROWS[200:]),
        "data/test-00000-of-00001.parquet": parquet(ROWS[:3]),
    }


@pytest.fixture
def stand_in(monkeypatch, shards):
    with WebServer().running() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        lines = b"".join(json.dumps({"id": row["id"], "text": row["text"]}).encode() + b"\n" for row in ROWS)
        converted = {"default/train/0000.parquet": parquet(ROWS[:9]), "other/train/0000.parquet": parquet(ROWS[:2])}
        yield Hub(
            server,
            {
                "datasets/o/n": {"main": shards},
                "datasets/o/lines": {"main": {"rows.jsonl": lines}, "refs/convert/parquet": converted},
                "datasets/o/bare": {"main": {"rows.jsonl": lines}},
                "datasets/o/bad": {"main": {"data/train.parquet": b"PAR1" + bytes(100) + b"PAR1"}},
                "o/m": {"main": {"config.json": b"{}", "deep/a.txt": b"A."}},
            },
        )


def rows_of(address: str, folder) -> list[dict[str, object]]:
    return [json.loads(line) for line in hub.fetch(address, folder).read_text().splitlines()]


def test_a_split_is_streamed_by_columns_and_not_the_rest(stand_in, tmp_path, shards):
    found = rows_of("hf://datasets/o/n?split=train&columns=id,text", tmp_path)
    assert found == [{"id": row["id"], "text": row["text"]} for row in ROWS]
    (tmp_path / "all").mkdir()
    assert rows_of("hf://datasets/o/n?split=test", tmp_path / "all") == [
        {name: value for name, value in row.items() if name != "image"} for row in ROWS[:3]
    ]


def test_columns_that_are_not_asked_for_are_not_sent(stand_in, tmp_path, monkeypatch):
    """Read-ahead of 4 MiB is more than these files hold, so their blocks are asked one by one."""
    big = [{"id": str(n), "text": "Ada.", "image": bytes([n]) * 2**20} for n in range(40)]
    stand_in.repositories["datasets/o/n"]["main"] = {"data/train.parquet": parquet(big)}
    assert rows_of("hf://datasets/o/n?columns=id", tmp_path) == [{"id": str(n)} for n in range(40)]
    assert stand_in.sent < 10 * 2**20


def test_the_blocks_are_those_of_the_same_rows_here(realmctl, stand_in, tmp_path, chain):
    (local := tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({key: row[key] for key in ("id", "title", "text", "year")}) + "\n" for row in ROWS)
    )
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    address = "hf://datasets/o/n?split=train&columns=id,title,text,year"
    for name, corpus in (("here", local), ("there", address)):
        words = ("--tokenizer", encoder, "--keep-fields", "year", "--workers", 1, "-w", tmp_path / name)
        code, _, err = realmctl("chunk", corpus, *words)
        assert code == 0, err
    here, there = (open_artifact(tmp_path / name / "blocks") for name in ("here", "there"))
    assert there.content == here.content and there.manifest.recipe == here.manifest.recipe
    assert there.manifest.sources["corpus"][0].name == address


def test_a_data_set_of_another_format_is_read_as_the_hub_converts_it(stand_in, tmp_path):
    assert len(rows_of("hf://datasets/o/lines?config=default&columns=id", tmp_path)) == 9
    with pytest.raises(InputError, match=r"several of its splits fit, and it has default/train, other/train"):
        hub.fetch("hf://datasets/o/lines?split=train", tmp_path)


def test_files_and_folders_are_copied_as_they_are(stand_in, tmp_path, shards):
    for number, (address, files) in enumerate(
        [
            ("hf://datasets/o/n/data/test-00000-of-00001.parquet", {"test-00000-of-00001.parquet": None}),
            ("hf://datasets/o/n@main/README.md", {"README.md": b"# About"}),
            (f"hf://datasets/o/n@{SHAS['main']}/data", {f"data/{name[5:]}": None for name in shards if "/" in name}),
            ("hf://o/m", {"m/config.json": b"{}", "m/deep/a.txt": b"A."}),
        ]
    ):
        (folder := tmp_path / str(number)).mkdir()
        hub.fetch(address, folder)
        found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        wanted = {
            name: shards[f"data/{name.rpartition('/')[2]}"] if data is None else data for name, data in files.items()
        }
        assert found == wanted


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("hf://datasets/o/none", "404"),
        ("hf://datasets/o/n@v9", "404"),
        ("hf://datasets/o/n/no.txt", "nothing there"),
        ("hf://datasets/o/bare", "the hub has made none of it"),
        ("hf://datasets/o/n", "several of its splits fit, and it has data/test, data/train"),
        ("hf://datasets/o/n?split=dev", "no split of it fits"),
        ("hf://datasets/o/n?split=test&columns=id,body", "has no column body, but id, title, text, year, image"),
        ("hf://datasets/o/n?splits=test", "splits is not known or empty"),
        ("hf://datasets/o/n?split=", "split is not known or empty"),
        ("hf://datasets/o/n/README.md?split=a", "asked of a data set alone"),
        ("hf://datasets/o", "no address of the hub"),
        ("hf://x", "no address of the hub"),
        ("hf://datasets/o/bad", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_told(realmctl, stand_in, tmp_path, address, why):
    code, _, err = realmctl("chunk", address, "--tokenizer", "train:100", "-w", tmp_path / "w")
    assert code == 3 and why in err and address in err, err


def test_more_rows_than_the_limit_are_given_up(stand_in, tmp_path, monkeypatch):
    monkeypatch.setattr(copying, "MAX_BYTES", 10_000)
    with pytest.raises(InputError, match="no more is copied"):
        hub.fetch("hf://datasets/o/n?split=train&columns=text", tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 10_000


def test_a_commit_is_read_whatever_its_branch_becomes(stand_in, tmp_path):
    hub.fetch("hf://datasets/o/n/README.md", tmp_path)
    assert all(SHAS["main"] in path for _, path, _ in stand_in.server.asked if "/resolve/" in path or "/tree/" in path)
