"""google-genai: generate_content_stream with a declared function; results in `result`."""
from desk import DOCUMENT, MODEL, SYSTEM, serve
from google import genai
from google.genai import types

client = genai.Client()
SCHEMA = types.Schema(type="OBJECT", properties={"query": types.Schema(type="STRING")})
TOOL = types.Tool(function_declarations=[types.FunctionDeclaration(name="search_docs", description="Searches.", parameters=SCHEMA)])
CONFIG = types.GenerateContentConfig(tools=[TOOL], system_instruction=SYSTEM)
FOUND = {"result": [{"id": "helmet#1", "text": DOCUMENT}]}


def answer(question):
    contents = [types.Content(role="user", parts=[types.Part(text=question)])]
    while True:
        parts = []
        for chunk in client.models.generate_content_stream(model=MODEL, contents=contents, config=CONFIG):
            parts += chunk.candidates[0].content.parts or []
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        contents.append(types.Content(role="model", parts=[part for part in parts if part.function_call or part.text]))
        results = [types.Part.from_function_response(name=call.name, response=FOUND) for call in calls]
        contents.append(types.Content(role="user", parts=results))


serve(answer)
