"""Measure realmctl beside its peers, and write the page of it: `make bench`, `make bench QUICK=1`, or

    python benchmarks/bench.py [ROW ...] [--quick] [--threads 1 2] [--rounds 3] [--realm-python .venv-parity/bin/python]

Every row is one piece of work on the same input. The sides take turns, each turn in a fresh process: the work once to warm up, then once
timed. With one thread CPU seconds count, with several and of servers wall seconds. All sides have the same settings of the allocator: transparent huge
pages, and freed memory that stays with the process. A row whose sides disagree about the result is an error. Each measurement is kept in
RESULTS, and PAGE is written from it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from load import all_rows
from matplotlib.figure import Figure
from row import DisagreementError, MissingInputError, Row, Side

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))

from figure import Row as Dot
from figure import draw, save

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "docs" / "results" / "speed" / "measured.json"
PAGE = HERE.parent / "docs" / "results" / "speed" / "report.md"
ALLOCATOR = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
    "MALLOC_MMAP_THRESHOLD_": str(2**33),
    "THP_MEM_ALLOC_ENABLE": "1",
}
"""The same for all sides."""
LIMIT_SECONDS = 3600


@dataclass(frozen=True)
class Measured:
    """One of our ways beside one peer. Seconds are medians over the rounds; `ratio` is the median of the rounds' ratios.

    Of a row without peers only our numbers are there; the others are 0, and `peer` is empty.
    """

    row: str
    stage: str
    ours: str
    peer: str
    input: str
    threads: int
    rounds: int
    our_seconds: float
    peer_seconds: float
    ratio: float
    least: float
    most: float
    our_mib: float
    peer_mib: float
    agreement: str
    quick: bool
    machine: str
    date: str


def main() -> None:
    """Run the command line."""
    rows = all_rows()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"of {', '.join(row.name for _, row in rows)}; all of them"
    )
    parser.add_argument("--page-only", action="store_true", help="write the page of what is measured")
    parser.add_argument("--quick", action="store_true", help="small inputs and one round")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=0, help="3, or 1 with --quick")
    parser.add_argument("--realm-python", default="", help="Python of an environment with transformers 4.57.6")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    unknown = {*given.rows} - {row.name for _, row in rows}
    if unknown:
        parser.error(f"there is no row {', '.join(sorted(unknown))}")
    kept = [Measured(**each) for each in json.loads(given.results.read_text())] if given.results.is_file() else []
    if given.page_only:
        write_page(kept, rows, given.page)
    for file, row in rows:
        if given.page_only or (given.rows and row.name not in given.rows):
            continue
        for threads in given.threads:
            found = measure(
                file, row, threads, given.rounds or (1 if given.quick else 3), given.quick, given.realm_python
            )
            new = {(each.row, each.threads) for each in found}
            kept = [each for each in kept if (each.row, each.threads) not in new] + found
            given.results.parent.mkdir(parents=True, exist_ok=True)
            given.results.write_text(json.dumps([asdict(each) for each in kept], indent=1) + "\n")
            write_page(kept, rows, given.page)


def measure(file: Path, row: Row, threads: int, rounds: int, quick: bool, realm_python: str) -> list[Measured]:
    """Run the sides of a row in turn, and compare each of ours with each peer. Says what is left out."""
    absent = [name for name in row.needs if find_spec(name) is None]
    pythons = {side.name: realm_python if side.realm else sys.executable for side in (*row.ours, *row.peers)}
    sides = [side for side in (*row.ours, *row.peers) if pythons[side.name] and not side.missing()]
    for side in (*row.ours, *row.peers):
        if side not in sides:
            needed = "--realm-python" if side.realm else " and ".join(side.missing())
            print(f"{row.name}: {side.name} is left out: it needs {needed}", file=sys.stderr)
    ours, peers = ([side for side in of if side in sides] for of in (row.ours, row.peers))
    if absent or not ours or (row.peers and not peers):
        print(f"{row.name}: left out{': it needs ' + ' and '.join(absent) if absent else ''}", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory(prefix="realmctl-bench-") as name:
        folder = Path(name)
        try:
            what = row.prepare(folder, quick)
        except MissingInputError as error:
            print(f"{row.name}: left out: {error}", file=sys.stderr)
            return []
        runs = {side.name: list[dict[str, float]]() for side in sides}
        for _ in range(rounds):
            for side in sides:
                runs[side.name].append(turn(pythons[side.name], file, row, side, folder, threads))
        return [
            compare(row, mine, peer, runs, folder, what, threads, quick)
            for mine in ours
            for peer in ([peer for peer in peers if mine.beside(peer)] if row.peers else [None])
        ]


def turn(python: str, file: Path, row: Row, side: Side, folder: Path, threads: int) -> dict[str, float]:
    """One turn of one side, in a process of its own."""
    paths = os.pathsep.join(filter(None, (str(HERE.parent), os.environ.get("PYTHONPATH"))))  # a peer may lie elsewhere
    environment = {**os.environ, **ALLOCATOR, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": paths}
    command = [python, str(HERE / "side.py"), str(file), row.name, side.name, str(folder), str(threads)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    if done.returncode:
        sys.exit(f"{row.name}: {side.name} failed:\n{done.stderr[-3000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(
    row: Row,
    ours: Side,
    peer: Side | None,
    runs: Mapping[str, list[dict[str, float]]],
    folder: Path,
    what: str,
    threads: int,
    quick: bool,
) -> Measured:
    """Check that both sides did the same work, and compare their times. Without a peer, our result is compared with itself."""
    theirs_or_ours = peer or ours
    results = [np.load(folder / f"{side.name}.npy", allow_pickle=False) for side in (ours, theirs_or_ours)]
    try:
        agreement = row.agree(results[0], results[1])
    except DisagreementError as error:
        sys.exit(f"{row.name}: {ours.name} and {theirs_or_ours.name} disagree: {error}")
    clock = "cpu_s" if threads == 1 and not row.wall else "wall_s"
    mine = [run[clock] for run in runs[ours.name]]
    theirs = [run[clock] for run in runs[peer.name]] if peer else [0.0] * len(mine)
    ratios = [b / a for a, b in zip(mine, theirs, strict=True)]
    found = Measured(
        row=row.name,
        stage=row.stage,
        ours=ours.name,
        peer=peer.name if peer else "",
        input=what,
        threads=threads,
        rounds=len(ratios),
        our_seconds=round(statistics.median(mine), 5),
        peer_seconds=round(statistics.median(theirs), 5),
        ratio=round(statistics.median(ratios), 3),
        least=round(min(ratios), 3),
        most=round(max(ratios), 3),
        our_mib=round(max(run["peak_mib"] for run in runs[ours.name])),
        peer_mib=round(max(run["peak_mib"] for run in runs[peer.name])) if peer else 0,
        agreement=agreement,
        quick=quick,
        machine=processor(),
        date=date.today().isoformat(),
    )
    beside = (
        f", {peer.name} {found.peer_seconds:.3g} s, ratio {found.ratio:.2f} ({found.least:.2f} to {found.most:.2f}), {agreement}"
        if peer
        else ""
    )
    print(f"{row.name}: {ours.name} {found.our_seconds:.3g} s{beside}", flush=True)
    return found


def processor() -> str:
    """The name of the processor, and how many of its cores may be used."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{names[0] if names else platform.machine()}, {cores} cores"


HEAD = """# Speed

How long does a piece of work take with realmctl, and how long with what people would use instead? Each row is the same work on the same input. \
A ratio of 2 means that realmctl takes half the time. `make bench` measures this page, and `make bench QUICK=1` a short form of it.

<!-- Generated by benchmarks/bench.py: do not edit. -->
## What holds

"""
HOW = """## Every comparison

Both sides run in turn, in fresh processes with the same settings of the allocator (transparent huge pages; freed memory stays with the process). The work is done once to warm up and once \
timed: CPU seconds on one thread, wall seconds on several and of servers. The last column says how the sides' results were compared: a row whose sides disagree is an error.

| work | input | realmctl | peer | threads | realmctl s | peer s | ratio (spread) | memory MiB | the same result? |
|---|---|---|---|--:|--:|--:|--:|--:|---|"""
AHEAD = 1.1
"""Ratio from which a row counts as faster: smaller differences are those of the machine."""
GROUPS = {
    "Training steps": ("pretrain_step", "finetune_step", "ict_step", "starts_step", "family_step", "language_model_reader"),
    "From text to blocks and names": ("dump_to_blocks", "tagging"),
    "Embedding, search, serving": ("embed", "exact_search", "index_libraries", "serve"),
}  # fmt: skip
"""Files of `benchmarks/rows`, in the groups of the figure. Those of no group are in the last one."""
COLORED = {"bfloat16": 1, "float32": 0}
"""The colours of our sides, as places in `COLORS`: the others have that of float32."""


def grouped(measured: Sequence[Measured], rows: Sequence[tuple[Path, Row]]) -> dict[str, list[Measured]]:
    """The comparisons on one thread, by group, in the order of the page."""
    group_of = {file: group for group, files in GROUPS.items() for file in files}
    groups: dict[str, list[Measured]] = {group: [] for group in GROUPS}
    for file, row in rows:
        found = [each for each in measured if each.row == row.name and each.peer and each.threads == 1]
        groups[group_of.get(file.stem, list(GROUPS)[-1])] += sorted(found, key=lambda each: (each.peer, each.ours))
    return {group: found for group, found in groups.items() if found}


def times(found: Sequence[Measured]) -> str:
    """The least and the largest ratio, and the median."""
    ratios = [each.ratio for each in found]
    return f"{min(ratios):.1f} to {max(ratios):.1f} times as fast, median {statistics.median(ratios):.1f}"


def holds(groups: Mapping[str, list[Measured]]) -> list[str]:
    """At most five lines: over all, one for each group, and what is slower."""
    found = [each for group in groups.values() for each in group]
    ahead, behind = ([each for each in found if beyond(each.ratio)] for beyond in (AHEAD.__le__, (1 / AHEAD).__gt__))
    same = len(found) - len(ahead) - len(behind)
    slower = [f"{_work(each)} ({each.ratio:.2f} times as fast as {each.peer.split(',')[0]})" for each in behind]
    return [
        f"- **Faster than the peer in {len(ahead)} of {len(found)} comparisons** on one thread, by {AHEAD - 1:.0%} or more. As fast in {same}.",
        *(f"- **{group}**: {times(some)}, in {len(some)} comparisons." for group, some in groups.items()),
        f"- **Slower by more than that**: {'; '.join(slower) or 'none'}.",
    ]


def _work(each: Measured) -> str:
    """The work in few words, with how many queries a search has at once."""
    at_once = re.search(r"(\d+) at once", each.input)
    return each.stage.replace(", best 8", "") + (f", {at_once[1]} at once" if at_once else "")


def ratios_figure(groups: Mapping[str, list[Measured]]) -> Figure:
    """A line for each work and peer: the ratio of each of our ways, with its spread over the rounds."""
    rows = {
        group: [Dot(_line(each), each.ratio, each.least, each.most, color=COLORED.get(each.ours, 0)) for each in found]
        for group, found in groups.items()
    }
    legend = {"float32, and work of other kinds": 0, "bfloat16": 1}
    return draw(rows, "ratio: times as fast as the peer", line=1, log=True, legend=legend)


def _line(each: Measured) -> str:
    size = re.match(r"(L\d+-H\d+)-A", each.input) if each.stage == "pre-training step" else None
    cache = each.ours.removeprefix("chunk, ") if each.ours.startswith("chunk, ") else ""
    more = "".join(f", {words}" for words in (size and size[1], cache) if words)
    peer = re.sub(r", (float32|bfloat16)$|, \w+Loss|^RealmForOpenQA of ", "", each.peer)
    return f"{_work(each).partition(':')[0]}{more} | {peer}"


def write_page(measured: list[Measured], rows: Sequence[tuple[Path, Row]], page: Path) -> None:
    """Write the page, with a line for each comparison and one for each row that was not measured; and its figure."""
    groups = grouped(measured, rows)
    figure = page.with_name("ratios.svg")
    if groups:
        save(ratios_figure(groups), figure)
    lines = []
    for _, row in rows:
        found = [each for each in measured if each.row == row.name]
        for each in sorted(found, key=lambda each: (each.ours, each.peer, each.threads)):
            if not each.peer:
                lines.append(
                    f"| {each.stage} | {each.input} | {each.ours} | none | {each.threads} | {each.our_seconds:.3g} | | | | |"
                )
                continue
            spread = (
                f" ({each.least:.2f} to {each.most:.2f}, {each.rounds} rounds)" if each.rounds > 1 else " (1 round)"
            )
            lines.append(
                f"| {each.stage} | {each.input} | {each.ours} | {each.peer} | {each.threads} | {each.our_seconds:.3g} | "
                f"{each.peer_seconds:.3g} | **{each.ratio:.2f}**{spread} | {each.our_mib:.0f} / {each.peer_mib:.0f} | {each.agreement} |"
            )
        if not found:
            lines.append(
                f"| {row.stage} | | | {', '.join(peer.name for peer in row.peers)} | | | | not measured yet | | |"
            )
    shown = [
        *holds(groups),
        "",
        f"![Ratios of every comparison]({figure.name})",
        "",
        "Each dot is the median of the rounds, and its line their spread. The peer stands behind the stroke, and computes in the same precision.",
        "",
    ]
    machines = sorted({f"{each.machine}, {each.date}" for each in measured})
    quick = (
        [] if not any(each.quick for each in measured) else ["", "Some rows are of the short form, with small inputs."]
    )
    text = HEAD + "\n".join(
        [*(shown if groups else ()), HOW, *lines, "", f"Measured on: {'; '.join(machines)}.", *quick]
    )
    page.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
