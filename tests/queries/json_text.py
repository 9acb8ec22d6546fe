"""JSON whose numbers stay as they were written, so that 10, 10.0 and 1e1 are three things."""

import json


class Number(str):
    """A number's text."""


def loads(text):
    return json.loads(text, parse_float=Number, parse_int=Number, parse_constant=Number)


def dumps(value):
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{dumps(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dumps(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
