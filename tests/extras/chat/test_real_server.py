"""`generate-queries --endpoint` with a real server that others wrote: `transformers serve`, with a tiny model of random weights."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from realmctl.errors import ConfigError
from realmctl.extras.chat.endpoint import Endpoint
from realmctl.extras.chat.settings import address_of
from realmctl.lab.language_models import generation
from realmctl.lab.language_models.generate_queries import GenerateQueries
from tests.fixtures.chain import Chain
from tests.fixtures.language_models import byte_tokenizer, make_llama

TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
SECONDS = 120
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """(address, name of the model) of a server on the loopback address."""
    pytest.importorskip("openai")
    pytest.importorskip("accelerate")
    folder = make_llama(tmp_path_factory.mktemp("lm") / "llama")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 4096}))
    words = PreTrainedTokenizerFast(tokenizer_object=byte_tokenizer(), eos_token="</s>", pad_token="<pad>")
    words.chat_template = TEMPLATE
    words.save_pretrained(folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("transformers")
    command = [sys.executable, program, "serve", str(folder), "--port", str(port), "--host", "127.0.0.1"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with (
        (folder.parent / "log").open("w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as run,
    ):
        try:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end and run.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.2)
            else:
                pytest.fail((folder.parent / "log").read_text()[-2000:])
            yield f"http://127.0.0.1:{port}/v1", str(folder)
        finally:
            run.kill()


def test_it_answers_in_the_form_that_the_client_reads(server):
    url, model = server
    hello = ({"role": "user", "content": "Hello?"},)
    replies = [Endpoint(address_of(url), model, 60.0).ask(hello, longest=5, temperature=0.0, seed=1) for _ in range(2)]
    assert replies[0].text == replies[1].text and replies[0].prompt_tokens == 7 and not replies[0].ended
    assert 0 < replies[0].completion_tokens <= 5
    with pytest.raises(ConfigError, match="no-such-model"):
        Endpoint(address_of(url), "no-such-model", 60.0).ask(hello, longest=5, temperature=0.0, seed=1)


def test_queries_by_it(chain: Chain, server, tmp_path, monkeypatch):
    """Random letters are no questions, so all are kept that differ, whatever they end with."""
    url, model = server
    monkeypatch.setattr(generation, "END_OF_QUESTION", generation.re.compile(""))
    stage = GenerateQueries(blocks=chain.blocks, lm=model, endpoint=url, sample=6, parallel=2, temperature=1.0)
    made = stage.make(tmp_path / "queries")
    assert made.metrics["requests"] == 6 and made.metrics["queries"] >= 1 and made.metrics["completion_tokens"] > 0
    answers = [json.loads(line) for line in made.file("answers.jsonl").read_text().splitlines()]
    assert len({answer["answer"] for answer in answers}) > 1
