# The fixture `ragcheck_case`. Where the package is installed (`pip install ragcheck-harness`), pytest finds it without this file
# and without pytest.ini.
pytest_plugins = ["ragcheck_harness.pytest_plugin"]
