"""A file of measurements that outlives the machine: one JSON line for each, appended as soon as it is made.

A line has the name of the output, the seed, a hash of every setting that it depends on, the numbers, and what they cost. A
measurement whose line is there with the same hash need not be made again. A page takes the newest settings of an output, which are
those of its last line, and leaves lines with other settings out.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """One measurement.

    Attributes:
        output: Name of the output, START.MEASUREMENT or ROW.MEASUREMENT.
        seed: Seed of the world and of all stages.
        settings: Hash of everything else that the measurement depends on; equal for all seeds.
        values: The metrics that are numbers.
        seconds: Seconds of one core that each step before it took, by the name of its output.
        made_with: Version of realmctl, and the processor.
        variables: Variables of the pipeline that were given by hand, such as a learning rate that is being tuned.
    """

    output: str
    seed: int
    settings: str
    values: Mapping[str, float]
    seconds: Mapping[str, float]
    made_with: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, str]:
        """What makes two records the same measurement."""
        return self.output, self.seed, self.settings


class Ledger:
    """The records in a file. A record that is appended is on the disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = list(_read(path))

    def __contains__(self, key: tuple[str, int, str]) -> bool:
        return any(record.key == key for record in self.records)

    def append(self, record: Record) -> None:
        """Write a line and flush it to the disk. A line that a crash left unfinished is ended first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as stream:
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                torn = stream.read(1) != b"\n"
                stream.write(b"\n" if torn else b"")
            stream.write(json.dumps(asdict(record), sort_keys=True).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.records.append(record)

    def newest(self, output: str) -> dict[int, Record]:
        """Return {seed: record} of an output with its newest settings; the last record of a seed counts."""
        found = [record for record in self.records if record.output == output]
        return {record.seed: record for record in found if record.settings == found[-1].settings}

    def by_seed(self, output: str, metric: str) -> dict[int, float]:
        """Return {seed: value} of a metric, with the newest settings of the output."""
        records = self.newest(output).items()
        return {seed: float(record.values[metric]) for seed, record in records if metric in record.values}


def _read(path: Path) -> Iterator[Record]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else (), 1):
        try:
            yield Record(**json.loads(line))
        except (ValueError, TypeError):
            print(f"{path}: line {number} is not a record and is left out")
