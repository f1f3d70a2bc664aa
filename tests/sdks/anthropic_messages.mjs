// @anthropic-ai/sdk: messages.stream with a tool.
import Anthropic from "@anthropic-ai/sdk";
import { MODEL, SCHEMA, SYSTEM, searchDocs, serve } from "./desk.mjs";

const client = new Anthropic();
const tools = [{ name: "search_docs", description: "Searches the documents.", input_schema: SCHEMA }];

await serve(async (question) => {
  const messages = [{ role: "user", content: question }];
  for (;;) {
    const said = await client.messages.stream({ model: MODEL, max_tokens: 500, system: SYSTEM, messages, tools }).finalMessage();
    const calls = said.content.filter((block) => block.type === "tool_use");
    if (!calls.length) return said.content.map((block) => block.text ?? "").join("");
    messages.push({ role: "assistant", content: said.content });
    const content = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: searchDocs() }));
    messages.push({ role: "user", content });
  }
});
