"""The google-genai client, streaming; results in `result`."""

import os

from desk import DOCUMENT, PROMPT, serve
from google import genai
from google.genai import types

options = types.HttpOptions(base_url=os.environ["GOOGLE_GEMINI_BASE_URL"])
client = genai.Client(http_options=options, api_key=os.environ.get("GEMINI_API_KEY", "none"))
SCHEMA = types.Schema(type="OBJECT", properties={"query": types.Schema(type="STRING")})
TOOL = types.Tool(function_declarations=[types.FunctionDeclaration(name="search_docs", description="Searches.", parameters=SCHEMA)])
CONFIG = types.GenerateContentConfig(tools=[TOOL], system_instruction=PROMPT)
FOUND = {"result": [{"id": "shipping#1", "text": DOCUMENT}]}


def answer(message):
    contents = [types.Content(role="user", parts=[types.Part(text=message)])]
    while True:
        parts = []
        for chunk in client.models.generate_content_stream(model="gemini-2.5-flash", contents=contents, config=CONFIG):
            parts += chunk.candidates[0].content.parts or []
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        contents.append(types.Content(role="model", parts=[part for part in parts if part.function_call or part.text]))
        results = [types.Part.from_function_response(name=call.name, response=FOUND) for call in calls]
        contents.append(types.Content(role="user", parts=results))


serve(answer)
