"""From a folder of Markdown with front matter to the same filtered hits in LangChain, in Qdrant and by curl.

    python examples/elsewhere.py handbook --filter 'date >= 2024' --query "How do I get my money back?"

It needs the packages langchain-core and qdrant-client, and the command curl. `--since` is the same condition in Qdrant's form.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

REALMCTL = [sys.executable, "-P", "-m", "realmctl"]


def main(arguments: list[str] | None = None) -> dict[str, list[str]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path)
    parser.add_argument("--query", default="How do I get my money back?")
    parser.add_argument("--filter", default="date >= 2024")
    parser.add_argument("--since", default="2024-01-01", help="the first date that passes")
    parser.add_argument("--encoder", help="folder or hub id of a sentence encoder")
    parser.add_argument("--workspace", "-w", type=Path, default=Path("artifacts"))
    given = parser.parse_args(arguments)
    named = ["--encoder", given.encoder] if given.encoder else []
    subprocess.run([*REALMCTL, "index-docs", given.documents, "-w", given.workspace, *named], check=True)
    found = {"LangChain": in_langchain(given), "Qdrant": in_qdrant(given), "curl": by_curl(given)}
    print(json.dumps(found, indent=1))
    return found


def in_langchain(given: argparse.Namespace) -> list[str]:
    """Blocks that LangChain's retriever finds."""
    from realmctl.integrations.langchain import Retriever

    retriever = Retriever(given.workspace, k=5, filter=given.filter, method="dense")
    return [str(found.id) for found in retriever.invoke(given.query)]


def in_qdrant(given: argparse.Namespace) -> list[str]:
    """Blocks that Qdrant finds in the exported table, with the vector of the query by our retriever."""
    import pyarrow.parquet as pq
    from qdrant_client import QdrantClient, models

    import realmctl

    table = given.workspace / "blocks.parquet"
    table.unlink(missing_ok=True)
    named = [given.workspace / "embeddings", table, "--form", "parquet", "--blocks", given.workspace / "blocks"]
    subprocess.run([*REALMCTL, "export", *named], check=True)
    [query] = realmctl.load_retriever(given.workspace / "retriever", precision="fp32").encode_queries([given.query])
    client, rows = QdrantClient(":memory:"), pq.read_table(table).to_pylist()
    vectors = models.VectorParams(size=len(query), distance=models.Distance.DOT)
    client.create_collection("blocks", vectors_config=vectors)
    points = [models.PointStruct(id=place, vector=row.pop("vector"), payload=row) for place, row in enumerate(rows)]
    client.upsert("blocks", points)
    since = models.FieldCondition(key="fields.date", range=models.DatetimeRange(gte=given.since))
    passing = models.Filter(must=[since])
    hits = client.query_points("blocks", query=query.tolist(), query_filter=passing, limit=5).points
    return [str(hit.payload["id"]) for hit in hits if hit.payload]


def by_curl(given: argparse.Namespace) -> list[str]:
    """Blocks that the server finds."""
    command = [*REALMCTL, "serve", "-w", given.workspace, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            asked = {"query": given.query, "filter": given.filter, "method": "dense"}
            sent = [
                "curl",
                "-s",
                f"{address}/api/v1/search",
                "-H",
                "Content-Type: application/json",
                "-d",
                json.dumps(asked),
            ]
            reply = json.loads(subprocess.run(sent, check=True, capture_output=True, text=True).stdout)
        finally:
            server.terminate()
    return [hit["block"] for hit in reply["hits"]]


if __name__ == "__main__":
    main()
