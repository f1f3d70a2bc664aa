"""google-genai: generate_content with a function that the SDK calls itself."""
from desk import MODEL, SYSTEM, search_docs, serve
from google import genai
from google.genai import types

client = genai.Client()
config = types.GenerateContentConfig(system_instruction=SYSTEM, tools=[search_docs])
serve(lambda question: client.models.generate_content(model=MODEL, contents=question, config=config).text)
