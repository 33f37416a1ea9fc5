"""Many requests to a language model: several at once, each answer kept with its prompt, and none asked again after a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from realmctl.artifacts import Writer
from realmctl.artifacts.hashing import digest
from realmctl.errors import RealmctlError
from realmctl.extras.chat.endpoint import Endpoint, Messages, Reply, key_for
from realmctl.extras.chat.settings import SERVED, EndpointSettings, address_of
from realmctl.log import Progress, say, warn

ANSWERS = "answers.jsonl"


@dataclass(frozen=True)
class Request:
    """What is asked. `id` tells requests apart; `messages` have role and content."""

    id: str
    messages: Messages
    longest: int
    temperature: float
    seed: int

    @property
    def recipe(self) -> str:
        """Hash of all of it: another prompt is another question."""
        return str(digest([self.id, [dict(each) for each in self.messages], self.longest, self.temperature, self.seed]))


class Asker:
    """Asks a server, and keeps a journal of answers in the scratch folder of a run, which `keep` makes a file of the artifact.

    This is a context manager; leaving it ends all requests.
    """

    def __init__(self, settings: EndpointSettings, lm: str, out: Writer, texts: str) -> None:
        """texts: what is sent, for the message that says where it goes."""
        assert settings.endpoint is not None
        address = address_of(settings.endpoint)
        self.endpoint = Endpoint(address, lm.removeprefix(SERVED), settings.timeout, key_for(address))
        self.parallel, self.out = settings.parallel, out
        self.journal = out.scratch("answers") / ANSWERS
        self.known = _read(self.journal)
        self.asked: dict[str, tuple[Request, Reply]] = {}
        self._told = f"{texts} go to {address}" + ("" if address.is_here else ", which is another machine")
        self._tell = say if address.is_here else warn

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *error: object) -> None:
        self.endpoint.close()

    def answers(self, requests: Sequence[Request], bar: Progress) -> dict[str, Reply]:
        """Return {id: answer} of the requests. Those that the journal has are not sent again. Errors: as of `Endpoint.ask`."""
        found = {each.id: self.known[each.recipe] for each in requests if each.recipe in self.known}
        bar.skip(len(found))
        if self._told and len(found) < len(requests):
            self._tell(self._told)
            self._told = ""
        with self.journal.open("a", encoding="utf-8") as file:
            for request, reply in self._sent([each for each in requests if each.id not in found]):
                line = {"asked": request.recipe, **asdict(reply)}
                file.write("\n" + json.dumps(line))  # newline first: a kill may have cut the previous line short
                file.flush()
                os.fsync(file.fileno())
                found[request.id] = self.known[request.recipe] = reply
                bar.advance()
        self.asked |= {each.id: (each, found[each.id]) for each in requests}
        return {each.id: found[each.id] for each in requests}

    def keep(self) -> dict[str, int]:
        """Write all prompts and answers into the artifact, in the order of asking. Returns the numbers of requests and of tokens."""
        with self.out.file(ANSWERS).open("w", encoding="utf-8") as file:
            for name, (request, reply) in self.asked.items():
                told = {
                    "id": name,
                    "messages": [dict(each) for each in request.messages],
                    "temperature": request.temperature,
                }
                record = {
                    **told,
                    "seed": request.seed,
                    "answer": reply.text,
                    "ended": reply.ended,
                    "model": reply.model,
                }
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        replies = [reply for _, reply in self.asked.values()]
        counts = {name: sum(getattr(each, name) for each in replies) for name in ("prompt_tokens", "completion_tokens")}
        return {"requests": len(replies), **{name: count for name, count in counts.items() if count}}

    def forget(self) -> None:
        """Leave no answer in the journal, for a run in which none was of use: the same command asks all again, such as another model of the same name."""
        self.journal.unlink(missing_ok=True)

    def _sent(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield each request with its answer, as they come. No more requests wait than threads can take.

        After a failure none is sent any more, and the answers of those that are under way still come. Then the failure is raised.
        """
        rest, failure = iter(requests), None
        waiting: dict[Future[Reply], Request] = {}
        with ThreadPoolExecutor(self.parallel, "asking") as threads:
            try:
                while True:
                    for request in islice(rest, 0 if failure else 2 * self.parallel - len(waiting)):
                        waiting[threads.submit(self._ask, request)] = request
                    if not waiting:
                        break
                    for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                        request = waiting.pop(done)
                        try:
                            reply = done.result()
                        except RealmctlError as error:
                            failure = failure or error
                            self.endpoint.stop()
                            for other in [each for each in waiting if each.cancel()]:
                                del waiting[other]
                        else:
                            yield request, reply
            finally:
                if waiting:  # Ctrl-C, or a full disk
                    self.endpoint.close()
                    threads.shutdown(wait=False, cancel_futures=True)
        if failure:
            raise failure

    def _ask(self, request: Request) -> Reply:
        return self.endpoint.ask(
            request.messages, longest=request.longest, temperature=request.temperature, seed=request.seed
        )


def _read(path: Path) -> dict[str, Reply]:
    """The answers of an interrupted run, by the hash of the request."""
    found: dict[str, Reply] = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            record: Mapping[str, Any] = json.loads(line)
            found[record["asked"]] = Reply(**{name: record[name] for name in record if name != "asked"})
        except (ValueError, TypeError, KeyError):
            continue  # a line that a kill cut short
    return found
