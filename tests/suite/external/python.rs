//! The example in Python: FastAPI and the openai client as they are. It runs where `RAGCHECK_PYTHON` names an interpreter
//! that has the packages of `examples/fastapi-agent/requirements.txt`; the agent in Rust covers the flow everywhere else.
