"""openai-agents with its defaults: Responses, one tool."""
from agents import Agent, Runner, function_tool, set_tracing_disabled
from desk import MODEL, SYSTEM, search_docs, serve

set_tracing_disabled(True)  # traces go to OpenAI, not to the model's base URL
desk = Agent(name="desk", instructions=SYSTEM, model=MODEL, tools=[function_tool(search_docs)])
serve(lambda question: Runner.run_sync(desk, question).final_output)
