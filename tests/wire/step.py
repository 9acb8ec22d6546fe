"""What a scenario is made of.

A scenario is a module in `scenarios/` with a docstring and a list `STEPS`. It gets a database of its own, created before its first
step and deleted after its last, unless it says `DATABASE = False`. In paths, header values and bodies `${db}` is that database's
name, `${run}` eight hexadecimal digits of this run alone; what an earlier step captured is there under its own name.
"""

import json
import re
from dataclasses import dataclass, field


@dataclass
class Step:
    """One request, and what of its answer is of interest."""

    name: str
    method: str
    # As sent, query included. `/docs?id=x` is meant below the scenario's database; `//databases` below the server's root.
    path: str
    body: object = None
    headers: dict = field(default_factory=dict)
    # Name -> where: `body.Results.0.@metadata.@change-vector` or `header.etag`.
    capture: dict = field(default_factory=dict)
    # Fragments that the error's text must contain, since clients or their users look for them.
    contains: tuple = ()
    # Paths of the body that are no concern of ours; `*` for all.
    ignore: tuple = ()
    # Nonsense that is refused: any error that a client shows its user will do, since which one it is is nobody's promise.
    refused: bool = False
    # Asked again until the answer's body has this value at this path (path, value): for what becomes true in the background.
    until: tuple = ()

    def request(self, values):
        """Method, path, headers and body bytes, with the captured values put in."""
        path = self.path[1:] if self.path.startswith("//") else f"/databases/${{db}}{self.path}"
        body = self.body
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body, ensure_ascii=False)
        if isinstance(body, str):
            body = fill(body, values).encode("utf-8", "surrogatepass")
        headers = {name: fill(value, values) for name, value in self.headers.items()}
        return self.method, fill(path, values), headers, body

    def description(self):
        """The request as it is kept beside its answer."""
        body = self.body
        if isinstance(body, bytes):
            body = f"<{len(body)} bytes: {body[:60]!r}>"
        elif isinstance(body, str) and len(body) > 500:
            body = body[:200] + f"... <{len(body)} characters>"
        out = {"method": self.method, "path": self.path, "headers": self.headers, "body": body}
        return {name: value for name, value in out.items() if value not in (None, {})}


def fill(text, values):
    return re.sub(r"\$\{(\w+)\}", lambda found: values[found.group(1)], text)


def pick(value, path):
    """The value at a dotted path."""
    for part in path:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
