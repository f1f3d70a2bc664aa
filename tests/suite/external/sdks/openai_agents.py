"""The OpenAI Agents SDK with its defaults, which is Responses; results are plain text."""

import asyncio

from agents import Agent, Runner, function_tool, set_tracing_disabled
from desk import DOCUMENT, PROMPT, serve

set_tracing_disabled(True)


@function_tool
def search_docs(query: str) -> str:
    """Searches the documents."""
    return DOCUMENT


agent = Agent(name="desk", instructions=PROMPT, tools=[search_docs], model="gpt-5-mini")
serve(lambda message: asyncio.run(Runner.run(agent, message)).final_output)
