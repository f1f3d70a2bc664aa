"""The fixture `case`: below `ragcheck exec`, a test that uses it is a case; alone, the test runs as it did."""

import json
import os
import urllib.error
import urllib.request

import pytest


class Case:
    question = None
    answer = None
    sources = None


def post(path, body):
    request = urllib.request.Request(os.environ["RAGCHECK_URL"] + path, json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as refused:
        pytest.fail(json.load(refused)["error"], pytrace=False)


@pytest.fixture
def case(request, monkeypatch):
    case = Case()
    if "RAGCHECK_URL" not in os.environ:
        yield case
        return
    begun = post("/cases", {"name": request.node.name})
    case.question = begun["question"]
    for variable, url in begun["base_urls"].items():
        monkeypatch.setenv(variable, url)
    yield case
    ended = {"error": "the test set no answer"} if case.answer is None else {"answer": case.answer}
    problem = post(f"/cases/{begun['id']}/end", {**ended, "sources": case.sources or []})["error"]
    if problem:
        pytest.fail(problem, pytrace=False)
