import unittest

from ledger import Ledger


class Hidden(unittest.TestCase):
    def test_empty_ledger_has_balance_zero(self):
        self.assertEqual(Ledger().balance(), 0)
        self.assertEqual(Ledger().statement(), [])

    def test_large_sums_are_exact(self):
        ledger = Ledger()
        ledger.add(2**53 + 1, "much")
        ledger.add(-5, "little")
        self.assertEqual(
            ledger.statement(),
            ["90071992547409.93 much 90071992547409.93", "-0.05 little 90071992547409.88"],
        )
