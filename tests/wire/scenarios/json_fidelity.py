"""What is stored comes back as it was written: numbers as spelt, order of properties, escapes, odd names."""

from step import Step


def round_trip(name, identifier, text):
    return [
        Step(f"put {name}", "PUT", f"/docs?id=j/{identifier}", body=text),
        Step(f"get {name}", "GET", f"/docs?id=j/{identifier}"),
    ]


STEPS = [
    *round_trip("numbers", "numbers", '{"a":0,"b":-0,"c":1.10,"d":1e3,"e":1E+3,"f":9223372036854775807,"g":-9223372036854775808,"h":0.1,"i":-0.0,"j":1.0,"k":123456789012345678901234567890,"l":3.141592653589793238462643383279}'),
    *round_trip("strings", "strings", r'{"a":"","b":"\"\\\/\b\f\n\r\t","c":"\u00e9\u4e2d\ud83e\udd9c","d":"é中🦜","e":"\u0000\u001f\u007f","f":"line\u2028sep"}'),
    *round_trip("order and nesting", "order", '{"z":1,"a":{"y":[{"x":null},[],{}]},"m":true,"b":false}'),
    *round_trip("empty object", "empty", "{}"),
    *round_trip("odd names", "names", '{"":1," ":2,"a.b":3,"a[0]":4,"@x":5,"é":6,"$type":7}'),
    *round_trip("white space", "white", ' \r\n\t{ "a" : [ 1 , 2 ] } \n'),
    *round_trip("names twice", "twice", '{"a":1,"b":2,"a":3}'),
    *round_trip("lone surrogates", "surrogates", r'{"a":"x\ud83ey","b":"\udd9c"}'),
    *round_trip("dates as given", "dates", '{"a":"2026-11-21T10:00:00Z","b":"2026-11-21","c":"2026-11-21T10:00:00.1234567+02:00"}'),
    *round_trip("names that differ in case", "case", '{"Name":1,"name":2,"NAME":3}'),
    Step("invalid UTF-8", "PUT", "/docs?id=j/utf8", body=b'{"a":"\xff\xfe"}'),
    Step("a number that is none", "PUT", "/docs?id=j/nan", body='{"a":NaN}'),
    Step("an infinite number", "PUT", "/docs?id=j/inf", body='{"a":Infinity}'),
    Step("a trailing comma", "PUT", "/docs?id=j/comma", body='{"a":1,}'),
    Step("a comment", "PUT", "/docs?id=j/comment", body='{"a":1/*x*/}', refused=True),
    Step("a raw control character", "PUT", "/docs?id=j/control", body='{"a":"x\ny"}'),
    Step("single quotes", "PUT", "/docs?id=j/single", body="{'a':1}"),
    Step("a leading zero", "PUT", "/docs?id=j/zero", body='{"a":01}', refused=True),
    Step("a leading plus", "PUT", "/docs?id=j/plus", body='{"a":+1}', refused=True),
    Step("two objects", "PUT", "/docs?id=j/two", body='{"a":1}{"b":2}'),
    Step("a byte order mark", "PUT", "/docs?id=j/bom", body=b'\xef\xbb\xbf{"a":1}'),
]
