#!/usr/bin/env python3
"""Query scripts against a server; README.md tells what they are.

    queries.py record --url URL [NAME..]   asks a real RavenDB (5.4) and writes its answers into the scripts
    queries.py check  --url URL [NAME..]   asks a server and prints what differs from the scripts and is not in differences.txt
"""

import argparse
import os
import re
import sys
from pathlib import Path

from differences import Differences, name_of
from script import Malformed, Outcome, parse, read_groups, rows_and_extras
from server import Database, Refused

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
DIFFERENCES = HERE / "differences.txt"

# Types of errors that clients make different exceptions of: a field that is not indexed, a document that is not there.
TOLD_APART = ("500 ArgumentException", "500 DocumentDoesNotExistException")


def chosen(names):
    paths = sorted(SCRIPTS.glob("*.queries"))
    return [path for path in paths if not names or path.stem in names]


def prepare(database, script, reverse=False, tolerant=False):
    """`tolerant` only tells of an index that is refused: the queries on it differ then."""
    for index in script.indexes:
        try:
            database.put_indexes([index.definition()])
        except Refused as refused:
            if not tolerant:
                raise
            print(f"{script.name}: {refused}")
    database.put_documents(script.documents[::-1] if reverse else script.documents)
    database.wait_for_indexes()


def ask(database, script, case, source):
    """(rows, extras, total) or an error's words."""
    try:
        answer = database.query(case.query(script, source), case.parameters, case.projection)
    except Refused as refused:
        return f"{refused.status} {refused.kind}", refused.message
    if answer.get("IsStale"):
        return "stale", "the answer is stale"
    rows, extras = rows_and_extras(answer, script)
    return rows, extras, answer["TotalResults"]


def ask_again(database, script, case, source):
    """The answer once the index that the query may have created or widened has come to rest: RavenDB may answer the first
    query from an index that is about to be replaced."""
    ask(database, script, case, source)
    database.wait_for_indexes()
    return ask(database, script, case, source)


def is_ordered(case):
    return case.has("ordered") or re.search(r"\border\s+by\b|select\s+(facet|suggest)\s*\(", case.text, re.I) is not None


def agree(first, second):
    """The rows of two answers, asked with documents stored in opposite orders, as groups whose order is defined.
    None when they are not the same rows."""
    if sorted(first) != sorted(second):
        return None
    groups, group, balance = [], [], {}
    for one, other in zip(first, second):
        group.append(one)
        for row, step in ((one, 1), (other, -1)):
            balance[row] = balance.get(row, 0) + step
            if balance[row] == 0:
                del balance[row]
        if not balance:
            groups.append(sorted(group))
            group = []
    return groups


def agreed(extras, again):
    """What two answers say beside their rows: a count that depends on the order of the documents is `?`."""
    if extras == again:
        return extras
    counts = ("skipped", "scanned")
    one, other = ({extra.split(" ")[0]: extra for extra in each} for each in (extras, again))
    varying = [f"{word} ?" for word in counts if one.get(word) != other.get(word)]
    same = [extra for extra in extras if extra in again]
    return varying + same


def outcome_of(case, first, second):
    if len(first) == 2 or len(second) == 2:
        if first[0] != second[0]:
            raise Malformed(f"line {case.line}: answered once {first[0]!r}, once {second[0]!r}: {first} {second}")
        return Outcome(error=first[0])
    (rows, extras, total), (rows_again, extras_again, total_again) = first, second
    outcome = Outcome(total=total if total == total_again else "?", extras=agreed(extras, extras_again))
    if case.has("ordered"):
        outcome.groups = [[row] for row in rows]
    elif case.has("total"):
        outcome.count_only = len(rows)
    elif not is_ordered(case) or case.has("set"):
        if sorted(rows) == sorted(rows_again):
            outcome.groups = [sorted(rows)] if rows else []
        else:
            outcome.count_only = len(rows)
    else:
        groups = agree(rows, rows_again)
        if groups is None:
            outcome.count_only = len(rows)
        else:
            outcome.groups = groups
    return outcome


def record(url, path):
    script = parse(path)
    with Database(url, f"scripts-{script.name}") as one, Database(url, f"scripts-{script.name}") as other:
        prepare(one, script)
        prepare(other, script, reverse=True)
        for case in script.cases:
            found = {}
            for source in case.sources(script):
                first, second = (ask_again(database, script, case, source) for database in (one, other))
                if len(first) == 2 and not case.has("fails"):
                    print(f"{path.name}:{case.line} [{source}] {case.text!r} fails: {first[0]} {first[1][:160]!r}")
                lines = tuple(outcome_of(case, first, second).lines())
                found.setdefault(lines, []).append(source)
            case.expected = [(sources, list(lines)) for lines, sources in found.items()]
        for index in one.call("GET", "/indexes/errors")["Results"]:
            for error in index["Errors"][:3]:
                print(f"{path.name}: {index['Name']}: {error['Document']}: {error['Error'][:300]}")
    path.write_text(script.text(), encoding="utf-8")
    print(f"{path.name}: {len(script.cases)} queries, {sum(len(c.sources(script)) for c in script.cases)} answers")


def same_error(expected, found):
    """Whether an error stands for another. That a query is wrong is said by two types, and RavenDB says it by many more
    (what went wrong while it ran into it); those that clients tell apart stay apart."""
    wrong_query = ("500 ParseException", "500 InvalidQueryException")
    return expected == found or (found in wrong_query and expected.startswith("500 ") and expected not in TOLD_APART)


def matches(expected, answer):
    """Why an answer is not what the lines expect, or None."""
    if len(answer) == 2:
        return None if expected[0].startswith("  error ") and same_error(expected[0][8:], answer[0]) else f"found error {answer[0]}: {answer[1][:200]}"
    rows, extras, total = answer
    found = [f"  total {total}"] + [f"  {extra}" for extra in extras]
    head = [line for line in expected if line[2] not in "-~=" and not line.startswith("  any ")]
    # A count that varies may be any, or none.
    varying = {line.split()[0] for line in head if line.endswith(" ?")}
    head, found = ([line for line in lines if line.split()[0] not in varying] for lines in (head, found))
    if head != found:
        return f"found {found + rows}"
    counts = [line for line in expected if line.startswith("  any ")]
    if counts:
        return None if counts[0] == f"  any {len(rows)}" else f"found {len(rows)} rows"
    groups = read_groups(expected)
    place = 0
    for group in groups:
        if sorted(rows[place:place + len(group)]) != sorted(group):
            return f"found rows {rows}"
        place += len(group)
    return None if place == len(rows) else f"found rows {rows}"


def check(url, path, quiet, everything, prune):
    script = parse(path)
    same, different = 0, 0
    known = Differences(Path(os.devnull) if everything else DIFFERENCES, script.name)
    with Database(url, f"scripts-{script.name}") as database:
        try:
            prepare(database, script, tolerant=True)
        except Refused as refused:
            print(f"{path.name}: cannot be prepared: {refused}")
            return 0, sum(len(case.sources(script)) for case in script.cases)
        for case in script.cases:
            for sources, lines in case.expected:
                for source in sources:
                    why = matches(lines, ask(database, script, case, source))
                    if why is None:
                        same += 1
                        continue
                    different += 1
                    if not known.differed(source, case) and not quiet:
                        print(f"{path.name}:{case.line} [{source}] {name_of(case)}")
                        print("    expected" + " |".join(lines) + f"\n    {why}")
    if prune:
        known.prune(DIFFERENCES)
    for entry in known.not_needed() if not quiet and not prune else ():
        print(f"differences.txt: no longer needed: {entry}")
    print(f"{path.name}: {same} the same, {different} different")
    return same, different


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("verb", choices=["record", "check"])
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--quiet", action="store_true", help="only the counts")
    arguments.add_argument("--all", action="store_true", help="the differences that are known, too")
    arguments.add_argument("--prune", action="store_true", help="take what is no longer needed out of differences.txt")
    arguments.add_argument("names", nargs="*", help="scripts, without .queries; all when none is named")
    options = arguments.parse_intermixed_args()
    same, different = 0, 0
    for path in chosen(options.names):
        if options.verb == "record":
            record(options.url, path)
        else:
            good, bad = check(options.url, path, options.quiet, options.all, options.prune)
            same, different = same + good, different + bad
    if options.verb == "check":
        print(f"{same} the same, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
