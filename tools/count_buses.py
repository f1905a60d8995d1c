"""Write the counts that ship with the package anew from Rust's raw files: tools/count_buses.py FOLDER.

The raw files themselves are not part of this project; see revealed/datasets/bus_files.py for what they hold.
"""

from __future__ import annotations

import sys
from pathlib import Path

from revealed.datasets import bus_counts
from revealed.datasets.bus_files import find_folder


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = find_folder(sys.argv[1], bus_counts.GROUPS)
    assert folder is not None  # a path that lacks files is an error
    target = Path(bus_counts.__file__).with_name(bus_counts.NAME)
    text = bus_counts.counts_as_text(folder)
    target.write_text(text, encoding="ascii", newline="\n")
    print(f"wrote {target}, {len(text.splitlines()) - 1} counts")


if __name__ == "__main__":
    main()
