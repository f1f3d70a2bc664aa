// openai: chat.completions.create with a tool.
import OpenAI from "openai";
import { MODEL, SCHEMA, SYSTEM, searchDocs, serve } from "./desk.mjs";

const client = new OpenAI();
const tools = [{ type: "function", function: { name: "search_docs", description: "Searches the documents.", parameters: SCHEMA } }];

await serve(async (question) => {
  const messages = [{ role: "system", content: SYSTEM }, { role: "user", content: question }];
  for (;;) {
    const { message } = (await client.chat.completions.create({ model: MODEL, messages, tools })).choices[0];
    if (!message.tool_calls?.length) return message.content;
    messages.push(message);
    for (const call of message.tool_calls) messages.push({ role: "tool", tool_call_id: call.id, content: searchDocs() });
  }
});
