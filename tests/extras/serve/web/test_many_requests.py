"""A thousand requests at once: each gets one answer or one error, and the server goes on."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from realmctl.extras.serve.web.application import create_app
from tests.extras.serve.conftest import QUESTION

httpx = pytest.importorskip("httpx2")

MANY, WAITING = 1000, 24


def test_a_thousand_requests_at_once(open_service):
    service = open_service(most_waiting=WAITING)

    async def all_at_once():
        transport = httpx.ASGITransport(create_app(service, ["testserver"], None))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver", timeout=300) as client:
            asked = [client.post("/api/v1/ask", json={"question": QUESTION}) for _ in range(MANY)]
            replies = await asyncio.gather(*asked)
            return replies, await client.post("/api/v1/ask", json={"question": QUESTION})

    replies, last = asyncio.run(all_at_once())
    counts = Counter(reply.status_code for reply in replies)
    assert set(counts) == {200, 503} and counts.total() == MANY and counts[200] >= WAITING
    expected = last.json()["answers"]
    for found in (reply.json()["answers"] for reply in replies if reply.status_code == 200):
        assert [answer["text"] for answer in found] == [answer["text"] for answer in expected]
        scores, wanted = ([answer["score"] for answer in each] for each in (found, expected))
        assert scores == pytest.approx(wanted, abs=1e-4)  # a batch changes no answer but by rounding
    refused = [reply for reply in replies if reply.status_code == 503]
    assert all(int(reply.headers["retry-after"]) >= 1 and "Try again" in reply.json()["error"] for reply in refused)
    status = service.status()
    assert status.refused == counts[503] and status.latency["ask"].requests == counts[200] + 1
    assert 1 < status.largest_batch <= 16
