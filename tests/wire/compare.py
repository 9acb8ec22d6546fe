"""Says where two normalised answers differ, one line for each place.

Objects are compared by name; the order of properties counts inside documents (objects with `@metadata`), because clients show it,
and nowhere else. A property too many is a difference like one too few: a shape drifts in both directions.

Names such as `<cv:A#2>` are compared by what they stand for, not by their number: where the same one is expected again the same
one has to come again, and where another, another. So a request that one of the servers refuses does not make all later ones differ.
"""

import re

SYMBOL = re.compile(r"<([A-Za-z:,]+)#\d+>")
# Headers that we send on more answers than the real server, and that harm nobody there.
WELCOME = ("raven-server-version", "database-cluster-tx-id", "database-missing")


class Comparison:
    """The comparisons of one scenario, step by step, and which names were found to mean the same."""

    def __init__(self):
        self.ours = {}
        self.theirs = {}

    def differences(self, expected, actual):
        """Lines `path: what is expected, what came`."""
        found = []
        if expected["status"] != actual["status"]:
            found.append(f"status: expected {expected['status']}, got {actual['status']}")
        headers = {name: value for name, value in actual["headers"].items() if name in expected["headers"] or name not in WELCOME}
        self.walk("header", expected["headers"], headers, found)
        self.walk("body", expected["body"], actual["body"], found)
        return found

    def walk(self, path, expected, actual, found):
        if isinstance(expected, dict) and isinstance(actual, dict):
            for name in expected:
                if name not in actual:
                    found.append(f"{path}.{name}: missing, expected {short(expected[name])}")
                else:
                    self.walk(f"{path}.{name}", expected[name], actual[name], found)
            for name in actual:
                if name not in expected:
                    found.append(f"{path}.{name}: not expected, got {short(actual[name])}")
            if "@metadata" in expected and set(expected) == set(actual) and list(expected) != list(actual):
                found.append(f"{path}: order of properties, expected {list(expected)}, got {list(actual)}")
        elif isinstance(expected, list) and isinstance(actual, list):
            if len(expected) != len(actual):
                found.append(f"{path}: expected {len(expected)} elements, got {len(actual)}")
            for index, (one, other) in enumerate(zip(expected, actual)):
                self.walk(f"{path}[{index}]", one, other, found)
        elif isinstance(expected, str) and isinstance(actual, str):
            if SYMBOL.sub(r"<\1>", expected) != SYMBOL.sub(r"<\1>", actual):
                found.append(f"{path}: expected {short(expected)}, got {short(actual)}")
            else:
                for one, other in zip(SYMBOL.finditer(expected), SYMBOL.finditer(actual)):
                    self.bind(path, one.group(), other.group(), found)
        elif expected != actual:
            found.append(f"{path}: expected {short(expected)}, got {short(actual)}")

    def bind(self, path, expected, actual, found):
        """The two names mean the same from now on, unless each already means something else."""
        if self.ours.setdefault(expected, actual) != actual:
            found.append(f"{path}: expected the same as before, {expected}, got another")
        elif self.theirs.setdefault(actual, expected) != expected:
            found.append(f"{path}: expected a new value, {expected}, got one that was there before")


def short(value):
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
