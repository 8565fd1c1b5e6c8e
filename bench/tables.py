# SPDX-License-Identifier: Apache-2.0
"""The tables that bench_kernels and bench_algorithms print, read in one place for bench/chart and bench/update_tables."""
import dataclasses
import math
import re


@dataclasses.dataclass
class Row:
    """A kernel: our fastest round in ms and its rate, as printed, and each peer's time by ours."""
    ms: str
    rate: str
    ratios: dict  # of peers that have a form and whose results were right


def read(text):
    """Rows by their kernels' names, in order; a later row of a name replaces the earlier one. Rows that are wrong are left out."""
    rows, peers = {}, []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "kernel":
            peers = [re.sub(r" / ours$", "", cell) for cell in cells[4:]]
        elif peers and len(cells) == 4 + len(peers) and re.fullmatch(r"[\d.]+", cells[1]):
            found = [re.search(r"([\d.]+)x$", cell) for cell in cells[4:]]
            rows[cells[0]] = Row(cells[1], cells[3], {peer: float(ratio[1]) for peer, ratio in zip(peers, found) if ratio})
    return rows


def mean(values):
    """Geometric."""
    return math.exp(sum(map(math.log, values)) / len(values))
