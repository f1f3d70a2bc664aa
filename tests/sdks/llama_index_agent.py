"""llama-index: its function agent with OpenAI's model."""
import asyncio

from desk import MODEL, SYSTEM, search_docs, serve
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI

desk = FunctionAgent(tools=[search_docs], llm=OpenAI(model=MODEL), system_prompt=SYSTEM)


async def ask(question):
    return str(await desk.run(question))


serve(lambda question: asyncio.run(ask(question)))
