// openai: responses.create with a tool.
import OpenAI from "openai";
import { MODEL, SCHEMA, SYSTEM, searchDocs, serve } from "./desk.mjs";

const client = new OpenAI();
const tools = [{ type: "function", name: "search_docs", description: "Searches the documents.", parameters: SCHEMA, strict: true }];

await serve(async (question) => {
  const input = [{ role: "user", content: question }];
  for (;;) {
    const response = await client.responses.create({ model: MODEL, instructions: SYSTEM, input, tools });
    const calls = response.output.filter((item) => item.type === "function_call");
    if (!calls.length) return response.output_text;
    input.push(...response.output);
    for (const call of calls) input.push({ type: "function_call_output", call_id: call.call_id, output: searchDocs() });
  }
});
