#!/usr/bin/env python3
"""Raw requests and what must come back.

    wire.py record  --url URL            asks a real RavenDB and keeps its answers in expected/
    wire.py replay  --url URL            asks a server of ours and compares with expected/
    wire.py compare --url URL --peer URL asks both now, compares with each other

`replay` and `compare` know the differences that are meant, in differences.json, each with its reason. One that is gone is as loud
as a new one. `--only NAME` takes the scenarios whose name contains NAME; `--json FILE` keeps the results for other tools.
"""

import argparse
import importlib
import json
import pkgutil
import sys
import time
import uuid
from pathlib import Path

from compare import Comparison
from exchange import NoAnswer, exchange
from normalise import Normaliser, is_refusal, load
from step import pick

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected"
DIFFERENCES = HERE / "differences.json"
# How long `until` may take; a limit for what never comes, no expectation.
PATIENCE_SECONDS = 30


class Server:
    """One server, and a scenario's database on it."""

    def __init__(self, base_url, scenario):
        self.base_url = base_url.rstrip("/")
        self.database = f"wire-{scenario.replace('_', '-')}-{uuid.uuid4().hex[:8]}"
        # Eight hexadecimal digits of this run alone, for ids that a server must not have seen before.
        run = uuid.uuid4().hex[:8]
        self.values = {"db": self.database, "run": run}
        self.normaliser = Normaliser(self.base_url, {self.database: "<db>", run: "<run>"})

    def create(self):
        body = json.dumps({"DatabaseName": self.database}).encode()
        answer = exchange(self.base_url, "PUT", f"/admin/databases?name={self.database}&replicationFactor=1", {}, body)
        if answer.status != 201:
            sys.exit(f"{self.base_url} does not create a database: {answer.status} {answer.body[:500]!r}")

    def drop(self):
        names = [self.database, self.database + "x"]
        for name in names:
            body = json.dumps({"DatabaseNames": [name], "HardDelete": True}).encode()
            exchange(self.base_url, "DELETE", "/admin/databases", {"Content-Type": "application/json"}, body)

    def ask(self, step):
        """The normalised answer to a step. Silence is an answer too."""
        try:
            method, path, headers, body = step.request(self.values)
        except KeyError as missing:
            return {"status": f"not asked: no earlier step gave {missing}", "headers": {}, "body": None}
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = exchange(self.base_url, method, path, headers, body)
            except NoAnswer as silence:
                return {"status": f"no answer ({silence})", "headers": {}, "body": None}
            if not step.until or holds(answer, *step.until) or time.monotonic() > end:
                break
            time.sleep(0.05)
        self.keep(step, answer)
        if step.refused and is_refusal(answer, method):
            return {"status": "refused", "headers": {}, "body": None}
        normalised = self.normaliser.answer(answer, step.ignore)
        missing = [text for text in step.contains if text.encode() not in answer.body]
        if missing:
            normalised["headers"]["<text lacks>"] = missing
        return normalised

    def keep(self, step, answer):
        for name, where in step.capture.items():
            kind, _, path = where.partition(".")
            try:
                if kind == "header":
                    self.values[name] = answer.headers[path]
                else:
                    self.values[name] = str(pick(load(answer.body.decode()), split_path(path)))
            except (KeyError, IndexError, ValueError, TypeError):
                # The step that needs it says so.
                pass


def split_path(path):
    """`Results.0.@metadata.@change-vector` as its parts; names never contain a dot here."""
    return path.split(".")


def holds(answer, path, value):
    try:
        return pick(load(answer.body.decode()), split_path(path)) == value
    except (KeyError, IndexError, ValueError, TypeError):
        return False


def scenarios(only):
    """(name, module) of those that are wanted, in order of name."""
    import scenarios as folder

    for entry in sorted(pkgutil.iter_modules(folder.__path__), key=lambda entry: entry.name):
        if not only or only in entry.name:
            yield entry.name, importlib.import_module(f"scenarios.{entry.name}")


def run(name, module, *urls):
    """Each step's answers, one per server, steps in lockstep."""
    servers = [Server(url, name) for url in urls]
    try:
        if getattr(module, "DATABASE", True):
            for server in servers:
                server.create()
        return [(step, [server.ask(step) for server in servers]) for step in module.STEPS]
    finally:
        for server in servers:
            try:
                server.drop()
            except NoAnswer:
                print(f"{server.base_url} is gone", file=sys.stderr)


def record(arguments):
    EXPECTED.mkdir(exist_ok=True)
    count = 0
    for name, module in scenarios(arguments.only):
        kept = [{"step": step.name, "request": step.description(), "answer": answer} for step, [answer] in run(name, module, arguments.url)]
        count += len(kept)
        text = json.dumps(kept, indent=1, ensure_ascii=False)
        (EXPECTED / f"{name}.json").write_text(text.encode("utf-8", "backslashreplace").decode() + "\n")
        print(f"{name}: {len(kept)} steps")
    print(f"{count} answers recorded")
    return True


def check(arguments):
    """Replays against what was recorded, or compares with a peer that is asked now."""
    meant = {(entry["scenario"], entry["step"]): entry for entry in json.loads(DIFFERENCES.read_text())}
    results = []
    for name, module in scenarios(arguments.only):
        if arguments.command == "compare":
            rows = [(step, theirs, ours) for step, [theirs, ours] in run(name, module, arguments.peer, arguments.url)]
        else:
            recorded = json.loads((EXPECTED / f"{name}.json").read_text())
            steps = run(name, module, arguments.url)
            if [step.name for step, _ in steps] != [entry["step"] for entry in recorded]:
                sys.exit(f"expected/{name}.json is older than the scenario: record it again")
            rows = [(step, entry["answer"], ours) for (step, [ours]), entry in zip(steps, recorded)]
        comparison = Comparison()
        for step, expected, ours in rows:
            # Once through JSON, as what was recorded has been.
            found = comparison.differences(json.loads(json.dumps(expected)), json.loads(json.dumps(ours)))
            results.append(judge(name, step, found, meant.pop((name, step.name), None)))
    if not arguments.only:
        for scenario, step in meant:
            results.append({"scenario": scenario, "step": step, "outcome": "failed", "lines": ["differences.json names a step that does not exist"]})
    return report(results, arguments.json)


def judge(scenario, step, found, meant):
    """What became of a step. A meant difference names beginnings of the lines it stands for."""
    result = {"scenario": scenario, "step": step.name, "method": step.method, "path": step.path, "lines": found}
    if meant is None:
        return {**result, "outcome": "failed" if found else "passed"}
    excused = tuple(meant["lines"])
    unexcused = [line for line in found if not line.startswith(excused)]
    gone = [prefix for prefix in excused if not any(line.startswith(prefix) for line in found)]
    lines = unexcused + [f"differences.json expects a difference that is gone: {prefix}" for prefix in gone]
    return {**result, "outcome": "failed" if lines else "difference", "lines": lines, "reason": meant["reason"]}


def report(results, file):
    for result in results:
        if result["outcome"] == "failed":
            print(f"---- {result['scenario']}: {result['step']}\n     {result.get('method')} {result.get('path')}")
            for line in result["lines"]:
                print(f"     {line}")
    counts = {kind: sum(result["outcome"] == kind for result in results) for kind in ("passed", "failed", "difference")}
    print(f"wire: {counts['passed']} passed, {counts['failed']} failed, {counts['difference']} meant differences")
    if file:
        Path(file).write_text(json.dumps(results, indent=1))
    return counts["failed"] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "replay", "compare"))
    parser.add_argument("--url", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--only")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.command == "compare" and not arguments.peer:
        parser.error("compare needs --peer")
    good = record(arguments) if arguments.command == "record" else check(arguments)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
