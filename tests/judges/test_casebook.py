"""No row of the casebook (shared/casebook/cases.csv) that a judge of today answers for lacks its test."""

import ast
import csv
import re
from pathlib import Path

import pytest
from evidence_kit import SHARED

ANSWERED = {"L0", "L1", "L2", "L3", "L4", "L5", "L6", "L7", "input"}


def test_every_row_of_the_levels_at_hand_has_a_test_of_its_name():
    book = SHARED / "casebook" / "cases.csv"
    if not book.is_file():
        pytest.skip("the casebook is not beside this checkout")
    with book.open(encoding="utf-8", newline="") as stream:
        rows = {row["id"] for row in csv.DictReader(stream) if row["level_code"] in ANSWERED}
    named = {found[1].upper()
             for path in Path(__file__).parent.glob("test_*casebook.py")
             for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)
             if (found := re.match(r"test_(c\d+)_", node.name, re.IGNORECASE))}
    assert rows - named == set()
    assert len(rows) >= 52
