// openai: embeddings.create (packed vectors, which is this client's default), then chat with what is nearest.
import OpenAI from "openai";
import { MODEL, SYSTEM, searchDocs, serve } from "./desk.mjs";

const client = new OpenAI();
const texts = ["The bell rings.", searchDocs()];

await serve(async (question) => {
  const { data } = await client.embeddings.create({ model: "text-embedding-3-small", input: [question, ...texts] });
  const near = data.slice(1).map((one) => one.embedding.reduce((sum, value, at) => sum + value * data[0].embedding[at], 0));
  const system = `${SYSTEM}\n${texts[near.indexOf(Math.max(...near))]}`;
  const messages = [{ role: "system", content: system }, { role: "user", content: question }];
  return (await client.chat.completions.create({ model: MODEL, messages })).choices[0].message.content;
});
