"""The fixture `ragcheck_case`: below `ragcheck exec`, a test that uses it is a case; alone, the test runs as it did."""

import json
import os
import urllib.error
import urllib.request

import pytest


class Case:
    """A case while its test runs: `question` is the scenario's, if it has the case; the test sets the other two."""

    question = None
    answer = None
    sources = None


def post(path, body):
    request = urllib.request.Request(os.environ["RAGCHECK_URL"] + path, json.dumps(body).encode())
    # A proxy of the environment is not for an address of this machine.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as refused:
        pytest.fail(json.load(refused)["error"], pytrace=False)


@pytest.fixture
def ragcheck_case(request, monkeypatch):
    """Begins a case of the test's name and points the clients of its agent to its recording; ends it with the answer."""
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
