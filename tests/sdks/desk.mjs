// What the agents in JavaScript share: their documents, and one line of JSON in and out for each turn.
import { createInterface } from "node:readline";

export const MODEL = process.env.MODEL ?? "gpt-4o-mini";
export const SYSTEM = "You answer questions about bicycles. Always search the documents first.";
export const SCHEMA = { type: "object", properties: { query: { type: "string" } }, required: ["query"], additionalProperties: false };

export const searchDocs = () => JSON.stringify({ chunks: [{ id: "helmet.md#1", text: "The helmet is free with every bicycle." }] });

export async function serve(answer) {
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify({ answer: await answer(JSON.parse(line).message) }));
  }
}
