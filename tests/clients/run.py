#!/usr/bin/env python3
"""Runs the suites of the official clients, and the raw requests of tests/wire, against a server.

    run.py                      all suites, against a server that is started for it from --binary, on a folder that is then removed
    run.py --python --node      these
    run.py --url URL            against a server that runs already
    run.py --url URL --peer     that server is a real RavenDB: proves the cases themselves
    run.py --compat             writes COMPAT.md from the results that are kept

Each client is installed once, from the pinned files in locks/, below target/clients. Results are kept there as JSON, one file a
kind of server. What is expected to differ stands in expected.json with its reason; a case in it that passes fails the run like
one that fails without being in it, so the file stays true.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import compat

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "target" / "clients"
RESULTS = WORK / "results"
WIRE = HERE.parent / "wire"
# Limits for what hangs, no expectations.
LIMIT_SUITE_SECONDS = 1_800
LIMIT_START_SECONDS = 60

# The newest release on each registry, and one of the 5.x line.
SUITES = ["python-7.2.7", "python-5.2.6", "node-7.2.6", "node-5.4.3", "java-6.0.2", "wire"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in ("python", "node", "java", "wire"):
        parser.add_argument(f"--{kind}", action="append_const", dest="kinds", const=kind)
    parser.add_argument("--newest", action="store_true", help="leave out the older releases")
    parser.add_argument("--url", help="the server's address")
    parser.add_argument("--peer", action="store_true", help="the server at --url is a real RavenDB")
    parser.add_argument("--binary", default=str(ROOT / "target" / "debug" / "jackdaw"), help="what to start without --url")
    parser.add_argument("--compat", action="store_true", help="write COMPAT.md from the kept results, run nothing")
    parser.add_argument("--prepare", action="store_true", help="install the clients, run nothing")
    arguments = parser.parse_args()
    if arguments.compat:
        compat.write(ROOT / "COMPAT.md", RESULTS, SUITES)
        return 0
    suites = [suite for suite in SUITES if not arguments.kinds or suite.split("-")[0] in arguments.kinds]
    if arguments.newest:
        suites = [suite for suite in suites if not any(part.startswith("5.") for part in suite.split("-"))]
    for suite in suites:
        prepare(suite)
    if arguments.prepare:
        return 0
    where = "ravendb" if arguments.peer else "jackdaw"
    if arguments.url:
        cases = run_all(suites, arguments.url.rstrip("/"), where)
    else:
        with started(arguments.binary) as url:
            cases = run_all(suites, url, where)
    return report(cases, suites, where)


# ---- installing -------------------------------------------------------------------------------------------------------


def prepare(suite):
    """Installs a client from its pinned files, unless these very files were installed already."""
    kind = suite.split("-")[0]
    if kind == "wire":
        return
    lock = HERE / "locks" / (f"{suite}.txt" if kind == "python" else suite)
    files = sorted(lock.iterdir()) if lock.is_dir() else [lock]
    if kind == "java":
        files = [HERE / "java" / "pom.xml"]
    stamp = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    folder = WORK / suite
    stamped = folder / "installed"
    if stamped.exists() and stamped.read_text() == stamp:
        return
    print(f"installing {suite}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if kind == "python":
        venv.create(folder, with_pip=True)
        call([str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", "-r", str(lock)])
    elif kind == "node":
        for file in files:
            shutil.copy(file, folder)
        call(["npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder)
    elif kind == "java":
        call([*maven(suite), "test-compile"], cwd=HERE / "java")
    stamped.write_text(stamp)


def maven(suite):
    """Maven, quiet, with everything it makes below target/clients."""
    return ["mvn", "-q", "-B", f"-Dbuild.folder={WORK / suite}"]


def call(command, **more):
    outcome = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if outcome.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {outcome.returncode}:\n{outcome.stdout[-4000:]}")


# ---- the server -------------------------------------------------------------------------------------------------------


class started:
    """A server of ours on a free port and a new folder; stopped, and the folder removed, at the end."""

    def __init__(self, binary):
        self.binary = binary

    def __enter__(self):
        if not Path(self.binary).exists():
            sys.exit(f"there is no {self.binary}: build it (cargo build -p jackdaw-cli), or name another by --binary")
        self.folder = tempfile.mkdtemp(prefix="jackdaw-clients-")
        command = [self.binary, "serve", "--data-dir", self.folder, "--port", "0"]
        self.log = open(Path(self.folder) / "server.log", "wb")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        # Its only line on standard output is its address.
        url = self.process.stdout.readline().strip()
        if not url:
            self.process.wait(LIMIT_START_SECONDS)
            sys.exit(f"{' '.join(command)} ended with {self.process.returncode}:\n{self.log_tail()}")
        return url

    def log_tail(self):
        return (Path(self.folder) / "server.log").read_text(errors="replace")[-4000:]

    def __exit__(self, *_):
        if self.process.poll() is not None:
            print(f"the server ended by itself with {self.process.returncode}:\n{self.log_tail()}")
        else:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                print("the server does not stop; it is killed")
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


# ---- running ----------------------------------------------------------------------------------------------------------


def run_all(suites, url, where):
    """Cases of all suites, two suites at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda suite: run_suite(suite, url, where), suites))
    return [case for cases in found for case in cases]


def run_suite(suite, url, where):
    kind = suite.split("-")[0]
    run = {"python": run_python, "node": run_node, "java": run_java, "wire": run_wire}[kind]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JACKDAW_")}
    environment |= {"CLIENTS_URL": url, "CLIENTS_PEER": "1" if where == "ravendb" else "0", "PYTHONDONTWRITEBYTECODE": "1"}
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="jackdaw-clients-") as folder:
        cases = run(suite, environment, Path(folder))
    print(f"{suite}: {len(cases)} cases in {time.monotonic() - start:.0f} s", flush=True)
    return cases


def process(command, **more):
    """Runs to the end or the limit; the output tells what happened when there is no result file."""
    try:
        where = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} | more
        outcome = subprocess.run(command, text=True, errors="replace", timeout=LIMIT_SUITE_SECONDS, **where)
        return outcome.stdout or f"ended with {outcome.returncode}"
    except subprocess.TimeoutExpired as late:
        return f"still running after {LIMIT_SUITE_SECONDS} s, killed: {(late.stdout or b'')[-2000:]!r}"


def run_python(suite, environment, folder):
    file = folder / "result.xml"
    # In the temporary folder, since the client writes a log where it is started.
    command = [str(WORK / suite / "bin" / "python"), "-m", "pytest", f"--junitxml={file}", "--tb=short", str(HERE / "python")]
    output = process(command, cwd=folder, env=environment)
    area = lambda case: case.get("classname", "").removeprefix("test_")
    name = lambda case: case.get("name").removeprefix("test_")
    return junit(suite, file, output, area, name)


def run_node(suite, environment, _folder):
    cases = []
    environment["CLIENT_MODULES"] = str(WORK / suite)
    for test in sorted((HERE / "node").glob("*.test.mjs")):
        # The client leaves sockets open after an import that fails, which would keep the process waiting for ever. TAP comes line by
        # line, so that a process that is ended so has told all of it.
        command = ["node", "--test", "--test-force-exit", "--test-reporter=tap", test.name]
        output = process(command, cwd=HERE / "node", env=environment)
        cases += tap(suite, test.name.removesuffix(".test.mjs"), output)
    return cases


def run_java(suite, environment, folder):
    output = process([*maven(suite), f"-Dreports={folder}", "test"], cwd=HERE / "java", env=environment)
    cases = []
    for file in sorted(folder.glob("*.xml")):
        cases += junit(suite, file, output, lambda case: case.get("classname").split(".")[-1].removesuffix("Test").lower(), lambda case: case.get("name"))
    return cases or [failed(suite, "smoke", "the suite itself", output)]


def run_wire(suite, environment, folder):
    file = folder / "result.json"
    output = process([sys.executable, str(WIRE / "wire.py"), "replay", "--url", environment["CLIENTS_URL"], "--json", str(file)], env=environment)
    if not file.exists():
        return [failed(suite, "wire", "the suite itself", output)]
    outcomes = {"passed": "passed", "failed": "failed", "difference": "difference"}
    # What differs, and why, is kept beside the requests (tests/wire/differences.json).
    return [
        {"suite": suite, "area": result["scenario"], "case": result["step"], "outcome": outcomes[result["outcome"]], "seconds": 0,
         "message": "\n".join(result["lines"]), "reason": result.get("reason")}
        for result in json.loads(file.read_text())
    ]


def junit(suite, file, output, area, name):
    try:
        tree = ElementTree.parse(file)
    except (OSError, ElementTree.ParseError):
        return [failed(suite, "suite", "the suite itself", output)]
    cases = []
    for case in tree.iter("testcase"):
        problem = next((inner for inner in case if inner.tag in ("failure", "error")), None)
        skipped = next((inner for inner in case if inner.tag == "skipped"), None)
        outcome = "failed" if problem is not None else "skipped" if skipped is not None else "passed"
        message = "" if problem is None else f"{problem.get('message') or ''}\n{problem.text or ''}".strip()
        cases.append({"suite": suite, "area": area(case), "case": name(case), "outcome": outcome, "seconds": float(case.get("time") or 0), "message": message})
    return cases or [failed(suite, "suite", "the suite itself", output)]


TAP_CASE = re.compile(r"^(not )?ok \d+ - (.*?)(?: # (SKIP)\b.*)?$")


def tap(suite, area, output):
    """Cases of one file, as Node's runner tells them: a line each, and below it, indented, how long it took and what went wrong."""
    cases = []
    for line in output.splitlines():
        found = TAP_CASE.match(line)
        if found:
            outcome = "skipped" if found[3] else "failed" if found[1] else "passed"
            name = found[2].replace("\\#", "#").replace("\\\\", "\\")
            cases.append({"suite": suite, "area": area, "case": name, "outcome": outcome, "seconds": 0.0, "message": ""})
        elif cases and line.startswith("  duration_ms: "):
            cases[-1]["seconds"] = float(line.split(": ")[1]) / 1000
        elif cases and line.startswith("  ") and cases[-1]["outcome"] == "failed":
            cases[-1]["message"] += line + "\n"
    return cases or [failed(suite, area, "the suite itself", output)]


def failed(suite, area, case, message):
    return {"suite": suite, "area": area, "case": case, "outcome": "failed", "seconds": 0, "message": message[-4000:]}


# ---- judging ----------------------------------------------------------------------------------------------------------


def report(cases, suites, where):
    """Applies expected.json, prints what is not as it should be and the counts, keeps the results."""
    expected = [entry for entry in json.loads((HERE / "expected.json").read_text()) if where in entry["where"]]
    found = {(case["suite"], case["area"], case["case"]): case for case in cases}
    for entry in expected:
        for suite in entry["suites"]:
            if suite not in suites:
                continue
            case = found.get((suite, entry["area"], entry["case"]))
            if case is None:
                cases.append(failed(suite, entry["area"], entry["case"], "expected.json names a case that does not exist"))
            elif case["outcome"] == "failed":
                case |= {"outcome": "difference", "reason": entry["reason"]}
            elif case["outcome"] == "passed":
                case |= {"outcome": "failed", "message": f"passes, but expected.json says it fails: {entry['reason']}"}
    for case in cases:
        if case["outcome"] == "failed":
            print(f"---- {case['suite']} {case['area']}: {case['case']}\n{case['message'][:3000]}\n")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{where}.json").write_text(json.dumps(merge(RESULTS / f"{where}.json", cases, suites), indent=1))
    for suite in suites:
        print(f"{suite}: {counts(case for case in cases if case['suite'] == suite)}")
    print(f"clients: {counts(cases)}")
    return 1 if any(case["outcome"] == "failed" for case in cases) else 0


def merge(file, cases, suites):
    """What was kept of the suites that did not run now, and these."""
    old = json.loads(file.read_text()) if file.exists() else []
    return [case for case in old if case["suite"] not in suites and case["suite"] in SUITES] + cases


def counts(cases):
    outcomes = [case["outcome"] for case in cases]
    return ", ".join(f"{outcomes.count(kind)} {word}" for kind, word in (("passed", "passed"), ("failed", "failed"), ("difference", "expected differences"), ("skipped", "skipped")))


if __name__ == "__main__":
    sys.exit(main())
