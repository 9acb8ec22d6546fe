"""differences.txt: the answers of ours that are known to differ from the recorded ones, each under its reason."""

from json_text import dumps


class Differences:
    def __init__(self, path, script):
        self.entries = []  # of [line, sources, case, sources that did differ]
        for line in path.read_text(encoding="utf-8").split("\n"):
            if not line.strip() or line[0] in "#=":
                continue
            head, _, case = line.partition(": ")
            name, _, sources = head.partition(" ")
            if name == script:
                self.entries.append((line, sources.split(","), case, set()))

    def differed(self, source, case):
        """Whether it is known that this case's answer differs."""
        known = False
        for _, sources, name, needed in self.entries:
            if source in sources and name in ("*", name_of(case)):
                needed.add(source)
                known = True
        return known

    def not_needed(self):
        """Lines, or sources of a line, without a case that differs."""
        for line, sources, _, needed in self.entries:
            unused = [source for source in sources if source not in needed]
            if unused:
                yield f"{line} [{','.join(unused)}]"

    def prune(self, path):
        """Takes out of the file what is not needed, and reasons without a case."""
        needed = {line: [source for source in sources if source in seen] for line, sources, _, seen in self.entries}
        kept = []
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line in needed and needed[line]:
                name, _, rest = line.partition(" ")
                kept.append(f"{name} {','.join(needed[line])}:{rest.partition(':')[2]}")
            elif line not in needed:
                kept.append(line)
        lines = [line for place, line in enumerate(kept)
                 if not line.startswith("= ") or (place + 1 < len(kept) and kept[place + 1].strip())]
        text = "\n".join(line for place, line in enumerate(lines) if line or place == 0 or lines[place - 1])
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def name_of(case):
    """The text on one line and the parameters: what a difference names the case by."""
    text = case.text.replace("\n", " ")
    if case.projection is not None:
        text += f" projection={case.projection}"
    return text if case.parameters is None else f"{text} $ {dumps(case.parameters)}"
