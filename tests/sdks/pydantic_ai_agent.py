"""pydantic-ai with OpenAI's chat model and a plain tool."""
from desk import MODEL, SYSTEM, search_docs, serve
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

desk = Agent(OpenAIChatModel(MODEL), system_prompt=SYSTEM)
desk.tool_plain(search_docs)
serve(lambda question: desk.run_sync(question).output)
