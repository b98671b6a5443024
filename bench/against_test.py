"""How `bench/against.py` reads rows and judges them: `python3 bench/against_test.py`."""

import unittest

from against import Row, parse, take


def row(unit, a, again, b):
    made = Row("w", unit)
    made.figures = {"A": a, "A'": again, "B": b}
    return made.judge()


class Reading(unittest.TestCase):
    def test_rows_are_read_and_everything_else_is_passed_over(self):
        line = "| 64 writers, 1 KiB | 41,250 appends/s (40100 to 43000) | SQLite 900/s | 45.10 | >= 3 | met |"
        self.assertEqual(parse(line), ("64 writers, 1 KiB", (41250.0, "appends/s")))
        self.assertEqual(parse("| a page | 0.25 ms (0.2 to 0.3) | | | | |"), ("a page", (0.00025, "s")))
        self.assertEqual(parse("| resident | 12 MiB (11 to 13) | | | | |"), ("resident", (12 * 1048576.0, "bytes")))
        for other in ("  - a note | with | bars", "| a | no figure | | | | |", "|---|---|---|---|---|---|", ""):
            self.assertIsNone(parse(other), other)

    def test_figures_go_to_their_contestant(self):
        rows = {}
        take(rows, "A", "| w | 10 ops/s (1 to 2) | | | | |\n  - note\n")
        take(rows, "B", "| w | 20 ops/s (1 to 2) | | | | |\n")
        self.assertEqual([row.figures for row in rows.values()], [{"A": [10.0], "A'": [], "B": [20.0]}])

    def test_rows_of_one_name_are_told_apart_and_measured_numbers_in_names_do_not_matter(self):
        rows = {}
        printed = "| a of 46 MB | 1 s | | | | |\n| the same | 2 s | | | | |\n| b | 3 s | | | | |\n| the same | 4 s | | | | |\n| b | 5 s | | | | |\n"
        take(rows, "A", printed)
        take(rows, "B", printed.replace("46", "47.5"))
        self.assertEqual([row.name for row in rows.values()], ["a of 46 MB", "a of 46 MB; the same", "b", "b; the same", "b"])
        self.assertEqual([row.figures["A"] for row in rows.values()], [row.figures["B"] for row in rows.values()])


class Judging(unittest.TestCase):
    def test_slower_is_below_the_limit_and_outside_of_what_the_machine_varies(self):
        self.assertEqual(row("ops/s", [100] * 3, [99, 101, 100], [94] * 3).word, "slower")
        self.assertEqual(row("ops/s", [100] * 3, [99, 101, 100], [96] * 3).word, "ok")
        self.assertEqual(row("ops/s", [100] * 3, [90, 101, 100], [94] * 3).word, "ok")

    def test_of_a_cost_less_is_better(self):
        self.assertEqual(row("s", [1.0] * 3, [1.0] * 3, [1.2] * 3).word, "slower")
        self.assertEqual(row("s", [1.0] * 3, [1.0] * 3, [0.5] * 3).word, "ok")
        self.assertAlmostEqual(row("s", [1.0] * 3, [1.0] * 3, [0.5] * 3).ratio, 2.0)

    def test_nothing_of_a_cost_is_as_good_as_nothing(self):
        self.assertEqual(row("of 10", [0.0], [0.0], [0.0]).word, "ok")
        self.assertEqual(row("of 10", [0.0] * 3, [0.0] * 3, [4.0] * 3).word, "slower")

    def test_a_row_that_is_gone_fails_and_a_new_one_does_not(self):
        self.assertTrue(row("s", [1.0], [1.0], []).fails())
        self.assertFalse(row("s", [], [], [1.0]).fails())


if __name__ == "__main__":
    unittest.main()
