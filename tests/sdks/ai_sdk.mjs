// ai with @ai-sdk/openai and its default API, Responses.
import { openai } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { MODEL, SCHEMA, SYSTEM, searchDocs, serve } from "./desk.mjs";

const tools = { search_docs: tool({ description: "Searches the documents.", inputSchema: jsonSchema(SCHEMA), execute: searchDocs }) };

await serve(async (prompt) => (await generateText({ model: openai(MODEL), system: SYSTEM, prompt, tools, stopWhen: stepCountIs(5) })).text);
