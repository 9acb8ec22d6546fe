"""A query script: its text read, and written again with other expectations. README.md tells the format."""

from dataclasses import dataclass, field
from pathlib import Path

from json_text import Number, dumps, loads

PLACE = "from *"


class Malformed(Exception):
    """A line that the format does not know."""


@dataclass
class Index:
    name: str
    maps: list = field(default_factory=list)
    reduce: str = None
    fields: object = None
    configuration: object = None
    sources: dict = field(default_factory=dict)

    def definition(self):
        body = {"Name": self.name, "Maps": self.maps}
        if self.reduce is not None:
            body["Reduce"] = self.reduce
        if self.fields is not None:
            body["Fields"] = self.fields
        if self.configuration is not None:
            body["Configuration"] = self.configuration
        if self.sources:
            body["AdditionalSources"] = self.sources
        return body


@dataclass
class Outcome:
    """What a query answers: an error, or a total and groups of rows. Rows of one group may stand in any order."""

    error: str = None
    total: str = None
    groups: list = field(default_factory=list)
    extras: list = field(default_factory=list)
    count_only: int = None

    def lines(self):
        if self.error is not None:
            return [f"  error {self.error}"]
        lines = [f"  total {self.total}"]
        lines += [f"  {extra}" for extra in self.extras]
        if self.count_only is not None:
            lines.append(f"  any {self.count_only}")
        for group in self.groups:
            if len(group) > 1 and all(is_plain_id(row) for row in group):
                lines.append("  = " + " ".join(group))
                continue
            for place, row in enumerate(group):
                lines.append(f"  {'~' if place else '-'} {row}")
        return lines


@dataclass
class Case:
    line: int
    text: str
    parameters: object = None
    words: list = field(default_factory=list)
    expected: list = field(default_factory=list)  # of (sources, outcome's lines)

    def sources(self, script):
        names = [word for word in self.words if word in script.sources]
        if PLACE not in self.text:
            return ["once"]
        return names or list(script.sources)

    def query(self, script, source):
        return self.text.replace(PLACE, "from " + script.sources.get(source, ""), 1)

    def has(self, word):
        return word in self.words

    @property
    def projection(self):
        return next((word.partition("=")[2] for word in self.words if word.startswith("projection=")), None)


@dataclass
class Script:
    path: Path
    head: list = field(default_factory=list)  # lines before the first case, as they are
    documents: list = field(default_factory=list)  # of (collection, id, value)
    indexes: list = field(default_factory=list)
    sources: dict = field(default_factory=dict)
    cases: list = field(default_factory=list)
    body: list = field(default_factory=list)  # comments, blank lines and cases in their order

    @property
    def name(self):
        return self.path.stem

    def text(self):
        lines = list(self.head)
        for item in self.body:
            if isinstance(item, str):
                lines.append(item)
                continue
            lines.append("? " + item.text.replace("\n", "\n  "))
            if item.parameters is not None:
                lines.append(f"$ {dumps(item.parameters)}")
            if item.words:
                lines.append("! " + " ".join(item.words))
            for sources, outcome in item.expected:
                lines.append("> " + " ".join(sources))
                lines += outcome
        return "\n".join(lines) + "\n"


def parse(path):
    script = Script(path)
    section, case = None, None
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], 1):
        try:
            section, case = parse_line(script, number, line, section, case)
        except (Malformed, ValueError) as error:
            raise Malformed(f"{path}:{number}: {error}") from None
    return script


def parse_line(script, number, line, section, case):
    """One line; answers the section and the case that the next one may belong to."""
    if line.startswith("? "):
        case = Case(number, line[2:])
        if script.body and isinstance(script.body[-1], Case):
            script.body.append("")
        script.cases.append(case)
        script.body.append(case)
        return None, case
    if case is not None and line.startswith("$ "):
        case.parameters = loads(line[2:])
        return None, case
    if case is not None and line.startswith("! "):
        case.words = line[2:].split()
        return None, case
    if case is not None and line.startswith(">"):
        case.expected.append((line[1:].split(), []))
        return None, case
    if case is not None and line.startswith("  ") and case.expected:
        case.expected[-1][1].append(line)
        return None, case
    if case is not None and line.startswith("  ") and case.parameters is None and not case.words:
        case.text += "\n" + line[2:]
        return None, case
    if not line.strip() or line.startswith("#"):
        (script.body if script.cases else script.head).append(line)
        return None, None
    if script.cases:
        raise Malformed(f"not part of a case: {line}")
    script.head.append(line)
    return parse_head(script, line, section), None


def parse_head(script, line, section):
    word, _, rest = line.partition(" ")
    index = script.indexes[-1] if script.indexes else None
    if line.startswith("    "):
        if section == "map":
            index.maps[-1] = (index.maps[-1] + "\n" + line[4:]).lstrip("\n")
        elif section == "reduce":
            index.reduce = (index.reduce + "\n" + line[4:]).lstrip("\n")
        elif isinstance(section, tuple) and section[0] == "source":
            index.sources[section[1]] = (index.sources[section[1]] + "\n" + line[4:]).lstrip("\n")
        else:
            raise Malformed("an indented line belongs to a map, a reduce or a source")
        return section
    if isinstance(section, tuple) and section[0] == "documents":
        if line.startswith('"'):
            end = line.index('" ', 1) + 1
            identity = loads(line[:end])
            rest = line[end + 1:]
        else:
            identity = word
        script.documents.append((section[1], identity, loads(rest)))
        return section
    if word == "documents":
        return ("documents", rest)
    if word == "index":
        script.indexes.append(Index(rest))
        script.indexes[-1].maps.append("")
        return "map"
    if word == "map":
        index.maps.append("")
        return "map"
    if word == "reduce":
        index.reduce = ""
        return "reduce"
    if word == "fields":
        index.fields = loads(rest)
        return None
    if word == "configuration":
        index.configuration = loads(rest)
        return None
    if word == "source":
        index.sources[rest] = ""
        return ("source", rest)
    if word == "on":
        name, _, text = rest.partition(": ")
        script.sources[name] = text
        return None
    raise Malformed(f"unknown: {line}")


def read_groups(lines):
    """The groups of rows among an expectation's lines; `Outcome.lines` wrote them."""
    groups = []
    for line in lines:
        if line.startswith("  = "):
            groups.append(line[4:].split(" "))
        elif line.startswith("  - "):
            groups.append([line[4:]])
        elif line.startswith("  ~ "):
            groups[-1].append(line[4:])
    return groups


def without_metadata(value):
    return {key: item for key, item in value.items() if key != "@metadata"}


def row_of(result, stored):
    """A result as a row: its id alone when it is the whole document as stored."""
    metadata = result.get("@metadata") or {}
    body = without_metadata(result)
    identity = metadata.get("@id")
    if identity is None:
        return dumps(body)
    shown = identity if is_plain_id(identity) else dumps(identity)
    if metadata.get("@projection") is None and same_document(body, stored.get(identity.lower())):
        return shown
    return f"{shown} {dumps(body)}"


def is_plain_id(row):
    return not any(c in row for c in ' "{')


def same_document(body, stored):
    return stored is not None and dumps(body) == dumps(stored)


def rows_and_extras(answer, script):
    """The rows of an answer, and what else of it is compared."""
    stored = {identity.lower(): value for _, identity, value in script.documents}
    rows = [row_of(result, stored) for result in answer["Results"]]
    extras = []
    skipped = answer.get("SkippedResults", Number("0"))
    if skipped not in ("0", None):
        extras.append(f"skipped {skipped}")
    scanned = answer.get("ScannedResults", Number("0"))
    if scanned not in ("0", None):
        extras.append(f"scanned {scanned}")
    includes = answer.get("Includes")
    if includes:
        found = sorted(f"{key}{'' if value is not None else '=null'}" for key, value in includes.items())
        extras.append("includes " + " ".join(found))
    highlightings = answer.get("Highlightings")
    if highlightings:
        sorted_by_id = {name: dict(sorted(hits.items())) for name, hits in highlightings.items()}
        extras.append("highlights " + dumps(sorted_by_id))
    return rows, extras
