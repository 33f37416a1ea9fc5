"""How the trainer keeps its index fresh. The training loop sees `Refresh` alone; it has no `if background`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from realmctl.artifact import Artifact, Origin, open_artifact, require_descent, verify
from realmctl.errors import ConfigError, InputError, MismatchError, QualityError, RealmctlError, ResourceError
from realmctl.log import say, warn
from realmctl.nn.retriever import Retriever
from realmctl.train.live import KEPT_INDEXES, IndexMaker, Live, at_step, prune, steps_in, take_snapshot

RESTARTS = 3
STALE_SECONDS = 120.0
STOP_SECONDS = 10.0
BACK_OFF = 2.0


class Refresh(Protocol):
    """All that the training loop sees. Steps are those taken so far."""

    def begin(self, step: int) -> None:
        """Training starts, or goes on, after this many steps."""
        ...

    def offer(self, step: int, retriever: Retriever) -> None:
        """Commit a snapshot when one is due at this step."""
        ...

    def newest(self, step: int) -> tuple[int, Artifact] | None:
        """The newest index of a snapshot up to this step, or None."""
        ...

    def at(self, step: int) -> Artifact:
        """The index of exactly this step: what a checkpoint was taken with."""
        ...

    def hold(self, step: int) -> None:
        """Say that the index of this step is in use."""
        ...

    def too_old(self, step: int, index_step: int) -> bool:
        """Whether training must wait for a fresher index."""
        ...

    def close(self) -> None:
        """Stop what runs beside the training."""
        ...


class Never:
    """The index stays the one that training began with."""

    def begin(self, step: int) -> None:
        pass

    def offer(self, step: int, retriever: Retriever) -> None:
        pass

    def newest(self, step: int) -> tuple[int, Artifact] | None:
        return None

    def at(self, step: int) -> Artifact:
        raise InputError(f"There is no index of step {step}: this run never refreshes.")

    def hold(self, step: int) -> None:
        pass

    def too_old(self, step: int, index_step: int) -> bool:
        return False

    def close(self) -> None:
        pass


class _Shared:
    """What the two real ways share: snapshots out, indexes in, through the live folder."""

    def __init__(self, live: Live, origin: Origin, tokenizer: Path, every: int, held: Callable[[], Sequence[int]]) -> None:
        self.live, self.origin, self.tokenizer, self.every = live, origin, tokenizer, every
        self._held = held

    def begin(self, step: int) -> None:
        """Forget what a run that got further than its last checkpoint left behind: those steps are taken again."""
        for folder in (self.live.snapshots, self.live.indexes):
            for later in (at for at in steps_in(folder) if at > step):
                shutil.rmtree(at_step(folder, later))

    def _due(self, step: int) -> bool:
        return step > 0 and step % self.every == 0

    def newest(self, step: int) -> tuple[int, Artifact] | None:
        steps = [at for at in steps_in(self.live.indexes) if at <= step]
        return (steps[-1], self.at(steps[-1])) if steps else None

    def at(self, step: int) -> Artifact:
        return open_artifact(at_step(self.live.indexes, step))

    def hold(self, step: int) -> None:
        self.live.hold([step, *self._held()])


class Inline(_Shared):
    """There and then, in this process: deterministic, for tests and CI."""

    def __init__(self, live: Live, origin: Origin, tokenizer: Path, every: int, held: Callable[[], Sequence[int]], device: str) -> None:
        super().__init__(live, origin, tokenizer, every, held)
        self.maker = IndexMaker(live.order(), device)

    def offer(self, step: int, retriever: Retriever) -> None:
        if not self._due(step):
            return
        snapshot = take_snapshot(self.live, self.origin, step, retriever, self.tokenizer)
        if step not in steps_in(self.live.indexes):
            self.maker.make(snapshot, at_step(self.live.indexes, step))
            prune(self.live.indexes, KEPT_INDEXES, self.live.held())

    def too_old(self, step: int, index_step: int) -> bool:
        return False

    def close(self) -> None:
        pass


class Background(_Shared):
    """In a child process whose stdin we hold: it sees the end of it when we die, however we die."""

    def __init__(
        self, live: Live, origin: Origin, tokenizer: Path, every: int, held: Callable[[], Sequence[int]], device: str, max_age: int
    ) -> None:
        super().__init__(live, origin, tokenizer, every, held)
        if max_age < every:
            raise ConfigError(f"--max-index-age {max_age} is below --refresh-every {every}: training would wait for an index nobody has ordered.")
        self.device, self.max_age = device, max_age
        self.child: subprocess.Popen[bytes] | None = None
        self.failures, self.start_at, self.known = 0, 0.0, -1
        self.beat, self.beat_at = "", time.monotonic()

    def offer(self, step: int, retriever: Retriever) -> None:
        if self._due(step):
            take_snapshot(self.live, self.origin, step, retriever, self.tokenizer)
        self._supervise()

    def newest(self, step: int) -> tuple[int, Artifact] | None:
        found = super().newest(step)
        if found is None or found[0] <= self.known:
            return None
        self._check(*found)
        self.known = found[0]
        self.failures = 0
        return found

    def _check(self, step: int, index: Artifact) -> None:
        verify(index)
        snapshot = at_step(self.live.snapshots, step)
        if snapshot.exists():
            require_descent(index, open_artifact(snapshot))

    def too_old(self, step: int, index_step: int) -> bool:
        if step - index_step <= self.max_age:
            return False
        self._supervise()
        return True

    def _supervise(self) -> None:
        """Start the refresher, or start it again when it died or stands still; give up after three times."""
        if self.child is None:
            if time.monotonic() >= self.start_at:
                self._start()
        elif self.child.poll() is not None:
            self._failed(f"it ended with exit code {self.child.returncode}", self.child.returncode)
        elif self._stands_still():
            self.child.kill()
            self.child.wait()
            self._failed(f"it gave no sign of life for {STALE_SECONDS:.0f} s", 5)

    def _start(self) -> None:
        with (self.live.folder / "refresher.log").open("ab") as log:
            command = [sys.executable, "-P", "-m", "realmctl", "refresh", str(self.live.folder), "--device", self.device]
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self.beat_at = time.monotonic()

    def _failed(self, what: str, code: int) -> None:
        self.child, self.failures = None, self.failures + 1
        self.start_at = time.monotonic() + BACK_OFF**self.failures
        if self.failures <= RESTARTS:
            warn(f"the index refresher failed: {what}; starting it again ({self.failures} of {RESTARTS})")
            return
        tail = (self.live.folder / "refresher.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-8:]
        kinds: dict[int, type[RealmctlError]] = {k.exit_code: k for k in (ConfigError, InputError, MismatchError, QualityError)}
        raise kinds.get(code, ResourceError)(
            f"the index refresher failed {self.failures} times in a row ({what}), and training does not go on with a stale index. "
            f"The last lines of {self.live.folder / 'refresher.log'}: {' | '.join(tail)}"
        )

    def _stands_still(self) -> bool:
        try:
            beat = (self.live.folder / "refresher.json").read_text(encoding="utf-8")
        except OSError:
            beat = ""
        if beat != self.beat:
            self.beat, self.beat_at = beat, time.monotonic()
        return time.monotonic() - self.beat_at > STALE_SECONDS

    def close(self) -> None:
        """End of file on its stdin tells the refresher to leave; then SIGTERM, then SIGKILL."""
        if self.child is None or self.child.stdin is None:
            return
        self.child.stdin.close()
        for stop in (lambda: None, self.child.terminate, self.child.kill):
            stop()
            try:
                self.child.wait(STOP_SECONDS)
                break
            except subprocess.TimeoutExpired:
                continue
        say(f"index refresher stopped: {_state(self.live.folder)}")
        self.child = None


class Elsewhere(Background):
    """As Background, but somebody else started the refresher: on another GPU, or another host that shares the folder."""

    def _supervise(self) -> None:
        pass


def _state(live: Path) -> str:
    try:
        state = json.loads((live / "refresher.json").read_text(encoding="utf-8"))
        return f"{state['state']}, newest index of step {state['step']}"
    except (OSError, ValueError, KeyError):
        return "it never said anything"
