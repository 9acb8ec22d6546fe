"""Says where two normalised answers differ, one line for each place.

Objects are compared by name; the order of properties counts inside documents (objects with `@metadata`), because clients show it,
and nowhere else. A property too many is a difference like one too few: a shape drifts in both directions.
"""

# Headers that we send on more answers than the real server, and that harm nobody there.
WELCOME = ("raven-server-version", "database-cluster-tx-id", "database-missing")


def differences(expected, actual):
    """Lines `path: what is expected, what came`."""
    found = []
    if expected["status"] != actual["status"]:
        found.append(f"status: expected {expected['status']}, got {actual['status']}")
    headers = {name: value for name, value in actual["headers"].items() if name in expected["headers"] or name not in WELCOME}
    walk("header", expected["headers"], headers, found)
    walk("body", expected["body"], actual["body"], found)
    return found


def walk(path, expected, actual, found):
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in expected:
            if name not in actual:
                found.append(f"{path}.{name}: missing, expected {short(expected[name])}")
            else:
                walk(f"{path}.{name}", expected[name], actual[name], found)
        for name in actual:
            if name not in expected:
                found.append(f"{path}.{name}: not expected, got {short(actual[name])}")
        if "@metadata" in expected and set(expected) == set(actual) and list(expected) != list(actual):
            found.append(f"{path}: order of properties, expected {list(expected)}, got {list(actual)}")
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            found.append(f"{path}: expected {len(expected)} elements, got {len(actual)}")
        for index, (one, other) in enumerate(zip(expected, actual)):
            walk(f"{path}[{index}]", one, other, found)
    elif expected != actual:
        found.append(f"{path}: expected {short(expected)}, got {short(actual)}")


def short(value):
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
