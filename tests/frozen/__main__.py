"""Compare realmctl with the golden file, or write that file anew after a change that is meant to change numbers.

python -m tests.frozen            # prints what is not as it was, and ends with 1 if there is anything
python -m tests.frozen --write    # writes tests/frozen/golden.json
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.frozen.frozen import GOLDEN, differences, everything, processor


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = everything(Path(folder))
    if sys.argv[1:] == ["--write"]:
        GOLDEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    here = golden.pop("processor") == found.pop("processor") == processor()
    lines = differences(golden, found, here)
    print("\n".join(lines) or "All is as it was.")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
