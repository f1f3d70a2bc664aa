// An agent that reasons, acts and observes, behind HTTP.
//
//   PORT=8000 node server.ts
//   POST /ask {"message": "...", "session": "..."}
//
// OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL are read from the environment; KNOWLEDGE is the folder of the documents, and
// SESSIONS the folder in which sessions outlive a restart.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Failed, Turn, begun } from "./agent.ts";
import type { Session } from "./agent.ts";
import { Documents } from "../documents.ts";
import { turn } from "../telemetry.ts";

const documents = new Documents(process.env.KNOWLEDGE ?? join(import.meta.dirname, "../../knowledge/fernlight"));
const folder = process.env.SESSIONS;
if (folder) mkdirSync(folder, { recursive: true });
const sessions = new Map<string, Session>();

const file = (id: string) => folder && join(folder, `${encodeURIComponent(id)}.json`);

/** A session, from its file after a restart; one that cannot be read starts afresh, and says so. */
function restored(id: string): { session: Session; notice?: string } {
  const known = sessions.get(id);
  if (known) return { session: known };
  const stored = file(id);
  if (!stored || !existsSync(stored)) return { session: begun() };
  try {
    return { session: JSON.parse(readFileSync(stored, "utf8")) as Session };
  } catch {
    return { session: begun(), notice: "The earlier conversation could not be restored." };
  }
}

function keep(id: string, session: Session) {
  sessions.set(id, session);
  const stored = file(id);
  if (stored) writeFileSync(stored, JSON.stringify(session));
}

const server = createServer(async (request, response) => {
  const reply = (status: number, body: unknown) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  const [, path, id] = (request.url ?? "").split("/");
  if (request.method === "GET" && path === "health") return reply(200, { ok: true });
  if (request.method === "DELETE" && path === "sessions" && id) {
    sessions.delete(decodeURIComponent(id));
    const stored = file(decodeURIComponent(id));
    if (stored) rmSync(stored, { force: true });
    return reply(200, { ok: true });
  }
  if (request.method === "POST" && path === "reset") {
    sessions.clear();
    return reply(200, { ok: true });
  }
  if (request.method !== "POST" || path !== "ask") return reply(404, { error: { kind: "not_found", message: "POST /ask" } });
  try {
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    const { message, session: name } = JSON.parse(text) as { message: string; session: string };
    const { session, notice } = restored(name);
    const answered = await turn(request.headers, () => new Turn(documents, session, message).run());
    keep(name, session);
    reply(200, notice ? { ...answered, notice } : answered);
  } catch (why) {
    if (why instanceof Failed) return reply(502, { error: { kind: why.kind, message: why.message } });
    if (why instanceof SyntaxError) return reply(400, { error: { kind: "bad_request", message: "The body is no JSON." } });
    console.error(why);
    reply(500, { error: { kind: "internal", message: "Something went wrong." } });
  }
});

server.listen(Number(process.env.PORT ?? 8000), "127.0.0.1");
