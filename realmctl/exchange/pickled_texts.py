"""A pickle of one array of texts, interpreted without unpickling it.

NumPy's pickle of such an array consists of the few opcodes in ACTIONS. A global is a name that is compared,
never looked up; a call is noted, never made; any other opcode or global is refused by its name. Texts stay
where they are in the mapped file until they are yielded, so memory does not grow with what they hold.
"""

from __future__ import annotations

import mmap
import pickletools
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from realmctl.errors import InputError

GLOBALS = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}
OPCODE_NAMES = {opcode.code: opcode.name for opcode in pickletools.opcodes}
MOST_ON_STACK = 4096
MOST_MEMOIZED = 1024
LONGEST_NAME = 256
LONGEST_RECORD = 16 * 2**20
MOST_REPETITION = 16
NEWEST_PROTOCOL = 5


class Text(NamedTuple):
    """A bytes or str object of the pickle: where it stands in the file, and how many bytes it has."""

    at: int
    size: int


class Global(NamedTuple):
    """The name of a global."""

    module: str
    name: str


class Items(NamedTuple):
    """A tuple of the pickle."""

    items: tuple[Any, ...]


class Call:
    """A global applied to arguments, and the state set by BUILD."""

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.name, self.arguments, self.state = name, arguments, tuple[Any, ...]()


class Elements:
    """The list of the array's records. Nothing is kept of them but their number."""

    count = 0


class Mark:
    """What MARK leaves on the stack."""


class Machine:
    """The pickle's stack and memo. Of texts the memo keeps where they stand alone."""

    def __init__(self, path: Path, data: mmap.mmap, start: int, count: int) -> None:
        self.path, self.data, self.at, self.count = path, data, start, count
        self.stack: list[Any] = []
        self.places, self.kept = array("q"), list[Any]()
        self.elements: Elements | None = None
        self.room = max(MOST_REPETITION * len(data), 2**20)

    def records(self) -> Iterator[str]:
        """Every record in order; nothing but an end that is checked comes after the last one."""
        while True:
            code = self._take(1)
            if code == b".":
                return self._finish()
            action = ACTIONS.get(code)
            if action is not None:
                action(self)
            elif code in b"ae":
                yield from self._appended(code)
            else:
                self._refuse_opcode(code)
            if len(self.stack) > MOST_ON_STACK:
                self._refuse(f"more than {MOST_ON_STACK} objects wait on the stack")

    def refuse_unless(self, right: bool, what: str) -> None:
        """Raise InputError saying `what` unless all is right."""
        if not right:
            self._refuse(what)

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(
            f"{self.path} is refused at byte {self.at}: {what}. Block records are a pickled array of bytes or str and "
            "nothing else, and nothing in the file was executed. Get the file from a source that you trust."
        )

    def _refuse_opcode(self, code: bytes) -> NoReturn:
        self._refuse(f"the pickle opcode {OPCODE_NAMES.get(code.decode('latin-1'), repr(code))} has no place in it")

    def _take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        self.refuse_unless(len(taken) == size, "it ends in the middle of the pickle")
        self.at += size
        return taken

    def _number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def _pop(self) -> Any:
        self.refuse_unless(bool(self.stack) and not isinstance(self.stack[-1], Mark), "the stack is empty")
        return self.stack.pop()

    def _popped_to_mark(self) -> tuple[Any, ...]:
        place = next((place for place in reversed(range(len(self.stack))) if isinstance(self.stack[place], Mark)), -1)
        self.refuse_unless(place >= 0, "a mark is missing")
        items = tuple(self.stack[place + 1 :])
        del self.stack[place:]
        return items

    def text(self, width: int) -> None:
        """Push a bytes or str object whose length takes `width` bytes."""
        size = self._number(width)
        self.refuse_unless(size <= LONGEST_RECORD, f"an object of {size} bytes")
        self.refuse_unless(self.at + size <= len(self.data), "it ends in the middle of the pickle")
        self.stack.append(Text(self.at, size))
        self.at += size

    def integer(self, width: int, signed: bool = False) -> None:
        """Push an int."""
        self.stack.append(self._number(width, signed))

    def tuple_of(self, size: int | None) -> None:
        """Push a tuple of the last `size` objects, or of those since the mark."""
        items = self._popped_to_mark() if size is None else tuple(reversed([self._pop() for _ in range(size)]))
        self.stack.append(Items(items))

    def protocol(self) -> None:
        """PROTO."""
        number = self._number(1)
        self.refuse_unless(2 <= number <= NEWEST_PROTOCOL, f"pickle protocol {number}")

    def frame(self) -> None:
        """FRAME: how much comes in one piece. Nothing hangs on it here."""
        size = self._number(8)
        self.refuse_unless(self.at + size <= len(self.data), "it ends in the middle of a frame")

    def new_list(self) -> None:
        """EMPTY_LIST: the records, once."""
        self.refuse_unless(self.elements is None, "a second list")
        self.elements = Elements()
        self.stack.append(self.elements)

    def memoize(self, width: int = 0) -> None:
        """MEMOIZE, BINPUT, LONG_BINPUT. Picklers number consecutively."""
        if width:
            number = self._number(width)
            self.refuse_unless(number == len(self.places), f"memo number {number}")
        self.refuse_unless(bool(self.stack), "the stack is empty")
        top = self.stack[-1]
        if isinstance(top, Text):
            self.places.extend([top.at << 25 | top.size])
        else:
            self.kept.append(top)
            self.places.append(-len(self.kept))
        self.refuse_unless(len(self.kept) <= MOST_MEMOIZED, "too many remembered objects")

    def remembered(self, width: int) -> None:
        """BINGET, LONG_BINGET."""
        number = self._number(width)
        self.refuse_unless(number < len(self.places), f"memo number {number}")
        place = self.places[number]
        self.stack.append(self.kept[-place - 1] if place < 0 else Text(place >> 25, place & 2**25 - 1))

    def global_line(self) -> None:
        """GLOBAL: module and name, a line each."""
        self._push_global(self._line(), self._line())

    def _line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + LONGEST_NAME)
        self.refuse_unless(end >= 0, "a global without an end")
        line = self._take(end - self.at).decode("utf-8", "replace")
        self.at += 1
        return line

    def global_from_stack(self) -> None:
        """STACK_GLOBAL."""
        name, module = self._pop(), self._pop()
        self._push_global(self._string(module), self._string(name))

    def _push_global(self, module: str, name: str) -> None:
        self.refuse_unless((module, name) in GLOBALS, f"the global {module}.{name} has no place in it")
        self.stack.append(Global(module, name))

    def _string(self, value: Any) -> str:
        self.refuse_unless(isinstance(value, Text) and value.size <= LONGEST_NAME, "a name that is none")
        return self.data[value.at : value.at + value.size].decode("utf-8", "replace")

    def call(self) -> None:
        """REDUCE: note the call that makes an empty array, or the dtype object."""
        arguments, function = self._pop(), self._pop()
        fits = isinstance(function, Global) and isinstance(arguments, Items)
        self.refuse_unless(fits, "a call of something else than a global")
        given = arguments.items
        if function.name == "_reconstruct":
            right = len(given) == 3 and given[0] == Global("numpy", "ndarray") and given[1] == Items((0,))
        else:
            right = function.name == "dtype" and bool(given) and self._string(given[0]) in ("O", "O4", "O8")
        self.refuse_unless(right, f"a call of {function.module}.{function.name} with other arguments")
        self.stack.append(Call(function.name, given))

    def build(self) -> None:
        """BUILD: note the state of the array or its dtype."""
        state, target = self._pop(), self._pop()
        right = isinstance(target, Call) and not target.state and isinstance(state, Items)
        self.refuse_unless(right, "a state of something else than the array")
        target.state = state.items
        self.stack.append(target)

    def _appended(self, code: bytes) -> Iterator[str]:
        """APPEND and APPENDS: the only place where records leave the file."""
        items = self._popped_to_mark() if code == b"e" else (self._pop(),)
        elements = self.stack[-1] if self.stack else None
        if not isinstance(elements, Elements):
            self._refuse("records that belong to no list")
        for item in items:
            self.refuse_unless(isinstance(item, Text), f"record {elements.count} is neither bytes nor str")
            elements.count += 1
            self.room -= item.size
            self.refuse_unless(elements.count <= self.count, f"more than the {self.count} records of its header")
            self.refuse_unless(self.room >= 0, "it repeats its texts without end")
            try:
                yield self.data[item.at : item.at + item.size].decode("utf-8")
            except UnicodeDecodeError:
                self._refuse(f"record {elements.count - 1} is not UTF-8")

    def _finish(self) -> None:
        top = self.stack[-1] if len(self.stack) == 1 else None
        state = top.state if isinstance(top, Call) and top.name == "_reconstruct" else ()
        dtype = state[2] if len(state) == 5 else None
        right = isinstance(dtype, Call) and dtype.name == "dtype" and state[1] == Items((self.count,))
        self.refuse_unless(right and state[4] is self.elements, "it is not the array that its header describes")
        held = self.elements.count if self.elements else 0
        self.refuse_unless(held == self.count, f"it has {held} records, its header says {self.count}")
        self.refuse_unless(self.at == len(self.data), "something follows the pickle")


ACTIONS: dict[bytes, Any] = {
    b"\x80": Machine.protocol,
    b"\x95": Machine.frame,
    b"C": lambda machine: machine.text(1),
    b"B": lambda machine: machine.text(4),
    b"\x8e": lambda machine: machine.text(8),
    b"\x8c": lambda machine: machine.text(1),
    b"X": lambda machine: machine.text(4),
    b"\x8d": lambda machine: machine.text(8),
    b"K": lambda machine: machine.integer(1),
    b"M": lambda machine: machine.integer(2),
    b"J": lambda machine: machine.integer(4, signed=True),
    b"N": lambda machine: machine.stack.append(None),
    b"\x88": lambda machine: machine.stack.append(True),
    b"\x89": lambda machine: machine.stack.append(False),
    b"(": lambda machine: machine.stack.append(Mark()),
    b")": lambda machine: machine.tuple_of(0),
    b"\x85": lambda machine: machine.tuple_of(1),
    b"\x86": lambda machine: machine.tuple_of(2),
    b"\x87": lambda machine: machine.tuple_of(3),
    b"t": lambda machine: machine.tuple_of(None),
    b"]": Machine.new_list,
    b"\x94": Machine.memoize,
    b"q": lambda machine: machine.memoize(1),
    b"r": lambda machine: machine.memoize(4),
    b"h": lambda machine: machine.remembered(1),
    b"j": lambda machine: machine.remembered(4),
    b"c": Machine.global_line,
    b"\x93": Machine.global_from_stack,
    b"R": Machine.call,
    b"b": Machine.build,
}
