import unittest

from roman import from_roman, to_roman


class Hidden(unittest.TestCase):
    def test_every_number_round_trips(self):
        seen = {to_roman(number) for number in range(1, 4000)}
        self.assertEqual(len(seen), 3999)
        for number in range(1, 4000):
            self.assertEqual(from_roman(to_roman(number)), number)
        self.assertEqual(to_roman(3888), "MMMDCCCLXXXVIII")

    def test_invalid_input_raises(self):
        for number in [0, -1, 4000]:
            with self.assertRaises(ValueError):
                to_roman(number)
        for text in ["", "x", "IC", "VX", "IIII", "VIIII", "MMMM", "XM", "I V"]:
            with self.assertRaises(ValueError):
                from_roman(text)
