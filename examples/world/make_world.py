"""Write a miniature world: an encyclopedia, a corpus of sentences about it, and questions.

    python examples/world/make_world.py --out DIR --seed 0 --size demo [--persons 400 ...]

examples/world/README.md describes each file. The same settings write the same bytes on every machine.
"""

import argparse
import json
from dataclasses import fields, replace
from pathlib import Path

from realmctl.errors import ConfigError
from realmctl.extras.demo.world.make_world import write_world
from realmctl.extras.demo.world.settings import SIZES, WorldSettings


def parse_arguments() -> tuple[Path, WorldSettings]:
    """Parse the arguments.

    `--size` chooses the defaults; every field of WorldSettings is an option that overrides its default.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write; it is created if it is missing")
    parser.add_argument("--size", choices=SIZES, default="demo")
    for field in fields(WorldSettings):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=None)
    given = vars(parser.parse_args())
    out, size = given.pop("out"), given.pop("size")
    return out, replace(SIZES[size], **{name: value for name, value in given.items() if value is not None})


def main() -> None:
    """Run the command line: write the world, and print its counts."""
    out, settings = parse_arguments()
    try:
        print(json.dumps(write_world(out, settings)["counts"]))
    except ConfigError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
