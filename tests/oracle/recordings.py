"""Read the recordings of other tools: one JSON line for each exchange of the given files.

    python3 tests/oracle/recordings.py FILE...

Written from the documentation of the formats, not from the Rust code, with the standard library and PyYAML, the reader that VCR.py uses. The lines have
file, format, number (from 1), method, url, status, and for `sent` and `received` either bytes (base64, decompressed) or the document that the file has in
their place. A body that cannot be read has an `error` instead.
"""
import base64
import gzip
import json
import re
import sys
import zlib

import yaml


class Loader(yaml.SafeLoader):
    pass


# Ruby writes the local tag, Python and Go the standard one.
Loader.add_constructor("!binary", yaml.SafeLoader.construct_yaml_binary)


def first(value):
    return value[0] if isinstance(value, list) and value else value


def header(headers, wanted):
    pairs = headers.items() if isinstance(headers, dict) else [(h["name"], h["value"]) for h in headers or []]
    return next((str(first(value)) for name, value in pairs if name.lower() == wanted), "")


def plain(data, headers):
    """The bytes without their compression; text was decompressed before."""
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if "deflate" in header(headers, "content-encoding"):
        for window in (15, -15):
            try:
                return zlib.decompress(data, window)
            except zlib.error:
                pass
    return data


def octets(value):
    return value if isinstance(value, bytes) else (value or "").encode()


def python(message):
    if message.get("parsed_body") is not None:
        return {"document": message["parsed_body"]}
    body = message.get("body", message.get("content"))
    if isinstance(body, dict) and set(body) <= {"string", "base64_string", "encoding"}:
        body = base64.b64decode(body["base64_string"]) if "base64_string" in body else body["string"]
    if isinstance(body, (dict, list)):
        return {"document": body}
    return {"bytes": plain(octets(body), message.get("headers"))}


def ruby(message):
    body = message.get("body") or {}
    if body.get("base64_string") is not None:
        return {"bytes": plain(base64.b64decode(body["base64_string"]), message["headers"])}
    string = body.get("string")
    if isinstance(string, str) and body.get("encoding") == "ISO-8859-1":
        string = string.encode("latin-1")
    return {"bytes": plain(octets(string), message["headers"])}


def go(message):
    return {"bytes": plain(octets(message.get("body")), message.get("headers"))}


def har(holder, headers):
    text = holder.get("text", "")
    if holder.get("encoding") != "base64":
        return {"bytes": text.encode()}
    pieces = json.loads(text) if text.startswith("[") else [text]
    return {"bytes": plain(b"".join(map(base64.b64decode, pieces)), headers)}


def documents(file, root):
    if "http_interactions" in root:
        for one in root["http_interactions"]:
            yield "Ruby VCR", one["request"]["method"], one["request"]["uri"], one["response"]["status"]["code"], ruby(one["request"]), ruby(one["response"])
    elif "log" in root:
        for one in root["log"]["entries"]:
            asked, answered = one["request"], one["response"]
            sent = har(asked.get("postData", {}), asked["headers"])
            yield "HAR", asked["method"], asked["url"], answered["status"], sent, har(answered["content"], answered["headers"])
    else:
        for one in root["interactions"]:
            asked, answered = one["request"], one["response"]
            if "uri" in asked:
                status = answered["status"]["code"] if isinstance(answered.get("status"), dict) else answered["status_code"]
                yield "VCR.py", asked["method"], asked["uri"], status, python(asked), python(answered)
            else:
                yield "go-vcr", asked["method"], asked["url"], answered["code"], go(asked), go(answered)


def split(message):
    """First line, headers and body of an HTTP message."""
    head, _, body = re.split(rb"(\r?\n\r?\n)", message, maxsplit=1)
    lines = head.decode().splitlines()
    headers = [{"name": name, "value": value.strip()} for name, _, value in (line.partition(":") for line in lines[1:])]
    if header(headers, "transfer-encoding").endswith("chunked"):
        rest, body = body, b""
        while size := int(rest.split(b"\n", 1)[0].split(b";")[0].strip(), 16):
            rest = rest.split(b"\n", 1)[1]
            body, rest = body + rest[:size], rest[size:].lstrip(b"\r\n")
    return lines[0], {"bytes": plain(body, headers)}


def traces(data):
    # Where the lengths no longer fit, because line ends were changed, a record begins with two numbers and a request line.
    starts = [found.start() for found in re.finditer(rb"\d+ \d+\r?\n[A-Z]+ https?://\S+ HTTP/1", data)]
    for start, end in zip(starts, starts[1:] + [len(data)]):
        lengths, record = data[start:end].split(b"\n", 1)
        asked = int(lengths.split()[0])
        if sum(map(int, lengths.split())) != len(record):
            asked = record.index(b"HTTP/", record.index(b"\n"))
        line, sent = split(record[:asked])
        answer, received = split(record[asked:])
        yield "httprr", line.split()[0], line.split()[1], int(answer.split()[1]), sent, received


def exchanges(file):
    with open(file, "rb") as opened:
        data = opened.read()
    if data.startswith(b"httprr trace v1"):
        return traces(data)
    text = data.decode()
    return documents(file, json.loads(text) if text.lstrip().startswith("{") else yaml.load(text, Loader))


def shown(body):
    return {"base64": base64.b64encode(body["bytes"]).decode()} if "bytes" in body else body


for file in sys.argv[1:]:
    for number, (format, method, url, status, sent, received) in enumerate(exchanges(file), 1):
        row = {"file": file, "format": format, "number": number, "method": method.upper(), "url": url, "status": status}
        print(json.dumps({**row, "sent": shown(sent), "received": shown(received)}))
