"""langgraph with langchain-openai: the prebuilt agent."""
from desk import MODEL, SYSTEM, search_docs, serve
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

desk = create_react_agent(ChatOpenAI(model=MODEL), [search_docs], prompt=SYSTEM)
serve(lambda question: desk.invoke({"messages": [("user", question)]})["messages"][-1].content)
