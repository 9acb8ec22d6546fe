"""Operations: ids, states, the list, and killing what is not there."""

from step import Step

STEPS = [
    Step("an id", "GET", "/operations/next-operation-id", capture={"op": "body.Id"}, ignore=("Id",)),
    Step("state of an operation that never began", "GET", "/operations/state?id=${op}"),
    Step("state without an id", "GET", "/operations/state", refused=True),
    Step("state of an id that is no number", "GET", "/operations/state?id=many", refused=True),
    Step("kill of an unknown one", "POST", "/operations/kill?id=987654321"),
    Step("kill without an id", "POST", "/operations/kill", refused=True),
    Step("no operations", "GET", "/operations", ignore=("Results.*.Id",)),
]
