"""Read `block_records.npy` of the published checkpoints: the texts of the blocks, in the order of the index.

The file is an array of Python objects, which NumPy writes as a pickle after the `.npy` header. The reader is our own because
it is safer: every unpickler, a restricted one too, builds the objects that a file asks for, and this one builds none. NumPy's
pickle of such an array consists of the few opcodes in HANDLERS. A global is a name that is compared, never looked up; a call
is recorded, never made. Any other opcode or global is refused with an error that names it. Texts stay in the mapped file
until they are yielded, so memory does not grow with them.
"""

from __future__ import annotations

import mmap
import pickletools
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from realmctl.errors import InputError, as_realmctl_error, one_line

GLOBALS = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}
OPCODE_NAMES = {opcode.code: opcode.name for opcode in pickletools.opcodes}
MAX_STACK = 4096
MAX_MEMO_OBJECTS = 1024
MAX_NAME_BYTES = 256
MAX_RECORD_BYTES = 16 * 2**20
MAX_EXPANSION = 16
NEWEST_PROTOCOL = 5


def read_records(path: Path) -> tuple[int, Iterator[str]]:
    """Return the number of records, and an iterator over their texts. Bytes are decoded as UTF-8.

    The part before the first record is checked at once, the rest while it is read. Raises InputError for a file that is
    missing, cut short, or not a one-dimensional array of bytes or str.
    """
    count, start = _header(path)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if not count:
        raise InputError(f"{path} holds no records. Download the file again.")
    next(PickleInterpreter(path, mapped, start, count).records())
    return count, PickleInterpreter(path, mapped, start, count).records()


def _header(path: Path) -> tuple[int, int]:
    """Return the number of records, and the position of the pickle in the file."""
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"it is of version {version}")
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            start = file.tell()
    except (OSError, ValueError, EOFError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path} is not a .npy file: {one_line(error)}. Get the file again."
        ) from None
    if dtype != np.dtype(object) or len(shape) != 1 or not 0 <= shape[0] <= path.stat().st_size:
        raise InputError(
            f"{path} holds {dtype} of shape {list(shape)}, where block records are a one-dimensional array of "
            "bytes or str (dtype object). Name the block_records.npy of a REALM checkpoint."
        )
    return int(shape[0]), start


class TextLocation(NamedTuple):
    """Location of a bytes or str object in the file: first byte and size in bytes."""

    at: int
    size: int


class Global(NamedTuple):
    """The name of a global."""

    module: str
    name: str


class PickledTuple(NamedTuple):
    """A tuple of the pickle."""

    items: tuple[Any, ...]


class RecordedCall:
    """A call that the pickle asks for: the name of the global, its arguments, and the state that BUILD sets."""

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.name, self.arguments, self.state = name, arguments, tuple[Any, ...]()


class RecordList:
    """The list of the array's records. Only their number is kept."""

    count = 0


class StackMark:
    """The object that MARK puts on the stack."""


class PickleInterpreter:
    """Interprets the opcodes of the pickle, with its stack and memo. For texts the memo keeps only their location."""

    def __init__(self, path: Path, data: mmap.mmap, start: int, count: int) -> None:
        self.path, self.data, self.position, self.count = path, data, start, count
        self.stack: list[Any] = []
        self.memo, self.memo_objects = array("q"), list[Any]()
        self.record_list: RecordList | None = None
        self.bytes_left = max(MAX_EXPANSION * len(data), 2**20)

    def records(self) -> Iterator[str]:
        """Yield every record in order. After the last one, check that the pickle ends as its header says."""
        while True:
            code = self._read(1)
            if code == b".":
                return self._finish()
            handler = HANDLERS.get(code)
            if handler is not None:
                handler(self)
            elif code in b"ae":
                yield from self._appended(code)
            else:
                self._refuse_opcode(code)
            if len(self.stack) > MAX_STACK:
                self._refuse(f"more than {MAX_STACK} objects wait on the stack")

    def refuse_unless(self, right: bool, what: str) -> None:
        """Raise InputError with the reason `what` unless `right`."""
        if not right:
            self._refuse(what)

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(
            f"{self.path} is refused at byte {self.position}: {what}. Block records are a pickled array of bytes or str and "
            "nothing else, and nothing in the file was executed. Get the file from a source that you trust."
        )

    def _refuse_opcode(self, code: bytes) -> NoReturn:
        self._refuse(f"the pickle opcode {OPCODE_NAMES.get(code.decode('latin-1'), repr(code))} is not allowed")

    def _read(self, size: int) -> bytes:
        data = self.data[self.position : self.position + size]
        self.refuse_unless(len(data) == size, "it ends in the middle of the pickle")
        self.position += size
        return data

    def _number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._read(size), "little", signed=signed)

    def _pop(self) -> Any:
        self.refuse_unless(bool(self.stack) and not isinstance(self.stack[-1], StackMark), "the stack is empty")
        return self.stack.pop()

    def _popped_to_mark(self) -> tuple[Any, ...]:
        place = next(
            (place for place in reversed(range(len(self.stack))) if isinstance(self.stack[place], StackMark)), -1
        )
        self.refuse_unless(place >= 0, "a mark is missing")
        items = tuple(self.stack[place + 1 :])
        del self.stack[place:]
        return items

    def text(self, width: int) -> None:
        """Push a bytes or str object whose length takes `width` bytes."""
        size = self._number(width)
        self.refuse_unless(size <= MAX_RECORD_BYTES, f"an object of {size} bytes")
        self.refuse_unless(self.position + size <= len(self.data), "it ends in the middle of the pickle")
        self.stack.append(TextLocation(self.position, size))
        self.position += size

    def integer(self, width: int, signed: bool = False) -> None:
        """Push an int."""
        self.stack.append(self._number(width, signed))

    def tuple_of(self, size: int | None) -> None:
        """Push a tuple of the last `size` objects, or of those since the mark."""
        items = self._popped_to_mark() if size is None else tuple(reversed([self._pop() for _ in range(size)]))
        self.stack.append(PickledTuple(items))

    def protocol(self) -> None:
        """PROTO."""
        number = self._number(1)
        self.refuse_unless(2 <= number <= NEWEST_PROTOCOL, f"pickle protocol {number}")

    def frame(self) -> None:
        """FRAME: the size of the next piece. It has no meaning here."""
        size = self._number(8)
        self.refuse_unless(self.position + size <= len(self.data), "it ends in the middle of a frame")

    def new_list(self) -> None:
        """EMPTY_LIST: the list of records. There may be only one."""
        self.refuse_unless(self.record_list is None, "a second list")
        self.record_list = RecordList()
        self.stack.append(self.record_list)

    def memoize(self, width: int = 0) -> None:
        """MEMOIZE, BINPUT, LONG_BINPUT. Picklers number consecutively."""
        if width:
            number = self._number(width)
            self.refuse_unless(number == len(self.memo), f"memo number {number}")
        self.refuse_unless(bool(self.stack), "the stack is empty")
        top = self.stack[-1]
        if isinstance(top, TextLocation):
            self.memo.extend([top.at << 25 | top.size])
        else:
            self.memo_objects.append(top)
            self.memo.append(-len(self.memo_objects))
        self.refuse_unless(len(self.memo_objects) <= MAX_MEMO_OBJECTS, "too many remembered objects")

    def remembered(self, width: int) -> None:
        """BINGET, LONG_BINGET."""
        number = self._number(width)
        self.refuse_unless(number < len(self.memo), f"memo number {number}")
        place = self.memo[number]
        self.stack.append(self.memo_objects[-place - 1] if place < 0 else TextLocation(place >> 25, place & 2**25 - 1))

    def global_line(self) -> None:
        """GLOBAL: the module and the name, on a line each."""
        self._push_global(self._line(), self._line())

    def _line(self) -> str:
        end = self.data.find(b"\n", self.position, self.position + MAX_NAME_BYTES)
        self.refuse_unless(end >= 0, "a global without an end")
        line = self._read(end - self.position).decode("utf-8", "replace")
        self.position += 1
        return line

    def global_from_stack(self) -> None:
        """STACK_GLOBAL."""
        name, module = self._pop(), self._pop()
        self._push_global(self._string(module), self._string(name))

    def _push_global(self, module: str, name: str) -> None:
        self.refuse_unless((module, name) in GLOBALS, f"the global {module}.{name} is not allowed")
        self.stack.append(Global(module, name))

    def _string(self, value: Any) -> str:
        self.refuse_unless(
            isinstance(value, TextLocation) and value.size <= MAX_NAME_BYTES, "a name that is not a text"
        )
        return self.data[value.at : value.at + value.size].decode("utf-8", "replace")

    def call(self) -> None:
        """REDUCE: record the call that makes an empty array, or its dtype."""
        arguments, function = self._pop(), self._pop()
        fits = isinstance(function, Global) and isinstance(arguments, PickledTuple)
        self.refuse_unless(fits, "a call of something other than a global")
        given = arguments.items
        if function.name == "_reconstruct":
            right = len(given) == 3 and given[0] == Global("numpy", "ndarray") and given[1] == PickledTuple((0,))
        else:
            right = function.name == "dtype" and bool(given) and self._string(given[0]) in ("O", "O4", "O8")
        self.refuse_unless(right, f"a call of {function.module}.{function.name} with other arguments")
        self.stack.append(RecordedCall(function.name, given))

    def build(self) -> None:
        """BUILD: record the state of the array or of its dtype."""
        state, target = self._pop(), self._pop()
        right = isinstance(target, RecordedCall) and not target.state and isinstance(state, PickledTuple)
        self.refuse_unless(right, "a state of something other than the array")
        target.state = state.items
        self.stack.append(target)

    def _appended(self, code: bytes) -> Iterator[str]:
        """APPEND and APPENDS: yield the records that are appended to the list."""
        items = self._popped_to_mark() if code == b"e" else (self._pop(),)
        record_list = self.stack[-1] if self.stack else None
        if not isinstance(record_list, RecordList):
            self._refuse("records that belong to no list")
        for item in items:
            self.refuse_unless(isinstance(item, TextLocation), f"record {record_list.count} is neither bytes nor str")
            record_list.count += 1
            self.bytes_left -= item.size
            self.refuse_unless(record_list.count <= self.count, f"more than the {self.count} records of its header")
            self.refuse_unless(self.bytes_left >= 0, "it repeats its texts too often")
            try:
                yield self.data[item.at : item.at + item.size].decode("utf-8")
            except UnicodeDecodeError:
                self._refuse(f"record {record_list.count - 1} is not UTF-8")

    def _finish(self) -> None:
        top = self.stack[-1] if len(self.stack) == 1 else None
        state = top.state if isinstance(top, RecordedCall) and top.name == "_reconstruct" else ()
        dtype = state[2] if len(state) == 5 else None
        right = isinstance(dtype, RecordedCall) and dtype.name == "dtype" and state[1] == PickledTuple((self.count,))
        self.refuse_unless(right and state[4] is self.record_list, "it is not the array that its header describes")
        held = self.record_list.count if self.record_list else 0
        self.refuse_unless(held == self.count, f"it has {held} records, its header says {self.count}")
        self.refuse_unless(self.position == len(self.data), "something follows the pickle")


HANDLERS: dict[bytes, Any] = {
    b"\x80": PickleInterpreter.protocol,
    b"\x95": PickleInterpreter.frame,
    b"C": lambda interpreter: interpreter.text(1),
    b"B": lambda interpreter: interpreter.text(4),
    b"\x8e": lambda interpreter: interpreter.text(8),
    b"\x8c": lambda interpreter: interpreter.text(1),
    b"X": lambda interpreter: interpreter.text(4),
    b"\x8d": lambda interpreter: interpreter.text(8),
    b"K": lambda interpreter: interpreter.integer(1),
    b"M": lambda interpreter: interpreter.integer(2),
    b"J": lambda interpreter: interpreter.integer(4, signed=True),
    b"N": lambda interpreter: interpreter.stack.append(None),
    b"\x88": lambda interpreter: interpreter.stack.append(True),
    b"\x89": lambda interpreter: interpreter.stack.append(False),
    b"(": lambda interpreter: interpreter.stack.append(StackMark()),
    b")": lambda interpreter: interpreter.tuple_of(0),
    b"\x85": lambda interpreter: interpreter.tuple_of(1),
    b"\x86": lambda interpreter: interpreter.tuple_of(2),
    b"\x87": lambda interpreter: interpreter.tuple_of(3),
    b"t": lambda interpreter: interpreter.tuple_of(None),
    b"]": PickleInterpreter.new_list,
    b"\x94": PickleInterpreter.memoize,
    b"q": lambda interpreter: interpreter.memoize(1),
    b"r": lambda interpreter: interpreter.memoize(4),
    b"h": lambda interpreter: interpreter.remembered(1),
    b"j": lambda interpreter: interpreter.remembered(4),
    b"c": PickleInterpreter.global_line,
    b"\x93": PickleInterpreter.global_from_stack,
    b"R": PickleInterpreter.call,
    b"b": PickleInterpreter.build,
}
