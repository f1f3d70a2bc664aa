"""The fixture `ragcheck_case`: below `ragcheck exec`, a test that uses it is a case; alone, the test runs as it did."""

import json
import os
import re
import unittest
import urllib.error
import urllib.request

import pytest


# Characters of a case's name, with room for the digest of letters beside a to z.
LONGEST_NAME = 90
# Tests by the names of their cases.
BEGUN = {}


class Case:
    """A case while its test runs: `question` is the scenario's, if it has the case; the test sets `answer` and `sources`.

    `base_urls`, by variable, and `headers` are for clients of tests that run side by side, or that were made earlier.
    """

    question = None
    answer = None
    sources = None

    def __init__(self):
        self.base_urls, self.headers = {}, {}


class Refused(Exception):
    """The reply of a refused request."""


def send(path, body):
    request = urllib.request.Request(os.environ["RAGCHECK_URL"] + path, json.dumps(body).encode())
    # A proxy of the environment is not for an address of this machine.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as refused:
        raise Refused(json.load(refused)) from None


def post(path, body):
    try:
        return send(path, body)
    except Refused as refused:
        pytest.fail(refused.args[0]["error"], pytrace=False)


def pytest_runtest_makereport(item, call):
    """Keeps why a test was skipped in its body or in the setup of another fixture, or what it raised."""
    skips = (pytest.skip.Exception, unittest.SkipTest)
    if call.when == "teardown" or call.excinfo is None:
        return
    if isinstance(call.excinfo.value, skips):
        item.ragcheck_skipped = str(call.excinfo.value)
    else:
        item.ragcheck_raised = f"{call.excinfo.typename}: {call.excinfo.value}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Gives tests of one name in several files or classes the names of these too, before any is deselected."""
    named = {}
    for item in items:
        if "ragcheck_case" in getattr(item, "fixturenames", ()):
            named.setdefault(item.name, {})[item.nodeid] = item
    for tests in named.values():
        for nodeid, item in tests.items():
            item.ragcheck_name = nodeid[-LONGEST_NAME:] if len(tests) > 1 else item.name


def begun_twice(node, name):
    """The other test whose case has the name of this one, as ragcheck reads names; keeps this one."""
    other = BEGUN.setdefault(re.sub("[^a-z0-9]+", "-", name.lower()).strip("-"), node.nodeid)
    return None if other == node.nodeid else other


@pytest.fixture
def ragcheck_case(request, monkeypatch):
    """Begins a case of the test's name and points the clients of its agent to its recording; ends it with the answer."""
    case = Case()
    if "RAGCHECK_URL" not in os.environ:
        yield case
        return
    problem = None
    name = getattr(request.node, "ragcheck_name", request.node.name)
    other = begun_twice(request.node, name)
    try:
        # With several workers of pytest-xdist, a request may also be that of a test without a case.
        side_by_side = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)) > 1
        begun = send("/cases", {"name": name, "side_by_side": side_by_side})
    except Refused as refused:
        begun, = refused.args
        problem = begun["error"]
        if other and "id" not in begun:
            problem += f" (the tests {other} and {request.node.nodeid})"
        # A case without a recording is no failure of a test that skips.
        if "id" not in begun:
            pytest.fail(problem, pytrace=False)
    case.question = begun.get("question")
    case.base_urls, case.headers = begun["base_urls"], begun.get("headers", {})
    for variable, url in begun["base_urls"].items():
        monkeypatch.setenv(variable, url)
    yield case
    skipped = getattr(request.node, "ragcheck_skipped", None)
    if skipped is not None:
        post(f"/cases/{begun['id']}/end", {"skipped": skipped})
        return
    if problem is None:
        raised = getattr(request.node, "ragcheck_raised", "the test set no answer")
        ended = {"error": raised} if case.answer is None else {"answer": case.answer}
        problem = post(f"/cases/{begun['id']}/end", {**ended, "sources": case.sources or []})["error"]
    if problem:
        pytest.fail(problem, pytrace=False)
