#!/usr/bin/env python3
"""Compares the benchmarks of this working tree with those of an earlier commit, in alternating rounds.

    bench/against.py REV [WORK...] [--quick] [--rounds N]

`make bench-against REV=... [ROWS="append-writers message-page"] [QUICK=1] [ROUNDS=9]` calls it.

REV is built in a git worktree in target/bench-against/REV, with a target directory of its own. A round runs REV (A), REV
again (A') and the working tree (B), in random order. A row fails if median(B)/median(A) is below 0.95 and below every A'/A
of a single round: REV against itself is how much the machine varies. A row that only one of the two has is named; one that
the working tree no longer has fails. Exits 1 if a row fails.
"""

import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOWEST = 0.95
ROUNDS = 9
# The first number of a figure, and what it counts.
FIGURE = re.compile(r"^\s*(-?[\d,_ ]*\d(?:\.\d+)?)\s*(.*)$")


class Row:
    """The figures of one row, by contestant, one a round."""

    def __init__(self, name, unit):
        self.name, self.unit = name, unit
        self.figures = {"A": [], "A'": [], "B": []}

    def ratio(self, over, under):
        """How good `over` is beside `under`: above 1 is better, whether more or less is better of this row."""
        if is_cost(self.unit):
            over, under = under, over
        if under == 0:
            return 1.0 if over == 0 else float("inf")
        return over / under

    def judge(self):
        a, again, b = (self.figures[name] for name in ("A", "A'", "B"))
        if not a or not again:
            return Verdict("new", None, None, None)
        if not b:
            return Verdict("gone", statistics.median(a), None, None)
        spread = [self.ratio(second, first) for first, second in zip(a, again)]
        middle = statistics.median(a)
        ratio = self.ratio(statistics.median(b), middle)
        slower = ratio < LOWEST and ratio < min(spread)
        return Verdict("slower" if slower else "ok", middle, (min(spread), max(spread)), ratio)


class Verdict:
    def __init__(self, word, figure, spread, ratio):
        self.word, self.figure, self.spread, self.ratio = word, figure, spread, ratio

    def fails(self):
        return self.word in ("slower", "gone")


def is_cost(unit):
    """Whether less is better: times and sizes are costs, everything per second is not."""
    return "/s" not in unit and "per second" not in unit


def parse(line):
    """Name, figure and unit of a row that banyan-bench prints; None for any other line, and for rows without a number."""
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) < 7 or cells[0] or not cells[1]:
        return None
    found = FIGURE.match(cells[2])
    if not found:
        return None
    number = float(re.sub(r"[,_ ]", "", found.group(1)))
    unit = re.sub(r"\s*\(.*", "", found.group(2)).strip()
    return cells[1], scaled(number, unit)


# So that a figure that crosses a border between two units stays comparable.
SCALES = {"ns": ("s", 1e-9), "µs": ("s", 1e-6), "us": ("s", 1e-6), "ms": ("s", 1e-3), "s": ("s", 1), "bytes": ("bytes", 1),
          "KiB": ("bytes", 1 << 10), "MiB": ("bytes", 1 << 20), "GiB": ("bytes", 1 << 30)}


def scaled(number, unit):
    word, _, rest = unit.partition(" ")
    base, factor = SCALES.get(word.rstrip(","), (None, None))
    if base is None or "/" in word:
        return number, unit
    return number * factor, base


def take(rows, contestant, printed):
    """Adds the rows of one run. "The same" belongs to the row before, and numbers in a name may differ from run to run."""
    before, met = "", {}
    for line in printed.splitlines():
        parsed = parse(line)
        if not parsed:
            continue
        name, (number, unit) = parsed
        if name.startswith("the same"):
            name = f"{before}; {name}"
        else:
            before = name
        words = re.sub(r"\d+(\.\d+)?", "#", name)
        met[words] = met.get(words, 0) + 1
        rows.setdefault((words, met[words]), Row(name, unit)).figures[contestant].append(number)


def build(tree, target):
    command = ["cargo", "build", "--release", "--package", "banyan-cli", "--package", "banyan-bench"]
    subprocess.run(command, cwd=tree, check=True, env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    return target / "release" / "banyan-bench"


def worktree(rev):
    commit = subprocess.run(["git", "rev-parse", "--verify", f"{rev}^{{commit}}"], cwd=ROOT, capture_output=True, text=True)
    if commit.returncode != 0:
        sys.exit(f"there is no commit `{rev}`; name one with REV=")
    commit = commit.stdout.strip()
    tree = ROOT / "target" / "bench-against" / commit[:12]
    if not (tree / "Cargo.toml").exists():
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
        subprocess.run(["git", "worktree", "add", "--force", "--detach", str(tree), commit], cwd=ROOT, check=True)
    return tree


def works_of(bench):
    """The works that a build's banyan-bench knows. It names them when it is asked for one that there is not."""
    said = subprocess.run([bench, "no-such-work"], capture_output=True, text=True).stderr
    found = re.search(r"there are (.*?)\"?\s*$", said.strip())
    return [word.strip() for word in found.group(1).split(",")] if found else []


def load_average():
    return " ".join(f"{load:.2f}" for load in os.getloadavg())


def show(number):
    return "" if number is None else f"{number:.4g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rev")
    parser.add_argument("work", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    words = parser.parse_args()
    tree = worktree(words.rev)
    old = build(tree, tree / "target")
    new = build(ROOT, pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve())
    known = {"A": works_of(old), "B": works_of(new)}
    wanted = words.work or sorted(set(known["A"]) | set(known["B"]), key=(known["B"] + known["A"]).index)
    unknown = [work for work in wanted if work not in known["A"] + known["B"]]
    if unknown:
        sys.exit(f"there is no work called `{unknown[0]}`; there are {', '.join(known['B'])}")
    rows, before = {}, load_average()
    for number in range(words.rounds):
        contestants = [("A", old), ("A'", old), ("B", new)]
        random.shuffle(contestants)
        for contestant, bench in contestants:
            works = [work for work in wanted if work in known["B" if contestant == "B" else "A"]]
            if not works:
                continue
            print(f"round {number + 1} of {words.rounds}: {contestant} (load {load_average()})", file=sys.stderr)
            command = [bench, *works, *(["--quick"] if words.quick else [])]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if done.returncode != 0:
                sys.exit(f"{bench} failed")
            take(rows, contestant, done.stdout)
    if not rows:
        sys.exit("the benchmarks printed no row")
    failed = report(rows, words.rev)
    print(f"\nLoad average before {before}, after {load_average()}. {words.rounds} rounds{', quick' if words.quick else ''}.")
    sys.exit(1 if failed else 0)


def report(rows, rev):
    """Prints the table and gives how many rows fail."""
    print(f"| work | {rev} (A) | A'/A | B/A | |\n|---|---|---|---|---|")
    failed = 0
    for row in rows.values():
        verdict = row.judge()
        spread = "" if verdict.spread is None else f"{verdict.spread[0]:.2f} to {verdict.spread[1]:.2f}"
        ratio = "" if verdict.ratio is None else f"{verdict.ratio:.2f}"
        word = f"**{verdict.word}**" if verdict.fails() else verdict.word
        print(f"| {row.name} | {show(verdict.figure)} {row.unit} | {spread} | {ratio} | {word} |")
        failed += verdict.fails()
    print(f"\n{failed} of {len(rows)} rows failed.")
    return failed


if __name__ == "__main__":
    main()
