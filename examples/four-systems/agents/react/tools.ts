// What the model may call. Every call is checked before it counts, and a refused one says why.

import type { FunctionTool } from "openai/resources/responses/responses";

export const APPROACHES = ["direct", "broader", "synonyms", "related"] as const;
export type Approach = (typeof APPROACHES)[number] | "own_knowledge";

const text = (description: string, maxLength: number) => ({ type: "string", minLength: 1, maxLength, description });

function tool(name: string, description: string, properties: Record<string, unknown>): FunctionTool {
  const parameters = { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
  return { type: "function", name, description, parameters, strict: false };
}

export const SEARCH = tool(
  "search_documents_for_facts",
  'Searches the documents. For example {"reasoning": "The manual should name the port.", "query": "firewall outgoing port", "approach": "direct"}.',
  {
    reasoning: text("Why this search comes next: what is known, and what is missing.", 1200),
    query: text("Two to eight words that the right passage holds.", 500),
    approach: { type: "string", enum: APPROACHES, description: "The approach that the state names for this step." },
  },
);

export const ASSESS = tool(
  "assess_search_results",
  'Grades what a search gave. For example {"observation": "…", "relevant": [1, 3], "goal_met": true, "summary": "…"}.',
  {
    observation: text("What the passages mean for the question.", 1200),
    relevant: { type: "array", items: { type: "integer", minimum: 1 }, description: "Numbers of the passages that help." },
    goal_met: { type: "boolean", description: "Whether the question can be answered in full." },
    summary: text("The outcome of this step, with its facts.", 600),
  },
);

export const ANALYSE = tool(
  "record_failure_analysis",
  'Says why an action failed. For example {"cause": "The words are not those of the manual.", "lesson": "Ask for the part by its name."}.',
  { cause: text("What went wrong.", 600), lesson: text("What to do otherwise.", 600) },
);

export interface Search {
  reasoning: string;
  query: string;
  approach: Approach;
}

export interface Assessment {
  observation: string;
  relevant: number[];
  goal_met: boolean;
  summary: string;
}

export interface Analysis {
  cause: string;
  lesson: string;
}

/** The arguments of a call if they have the members of the tool's schema, else why not. */
export function read<T>(of: FunctionTool, written: string): { value: T } | { wrong: string } {
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(written);
  } catch {
    return { wrong: "The arguments are no JSON object." };
  }
  const properties = of.parameters?.properties as Record<string, { type: string }>;
  for (const [name, { type }] of Object.entries(properties)) {
    const given = value?.[name];
    const fits = type === "array" ? Array.isArray(given) : typeof given === (type === "integer" ? "number" : type);
    if (!fits || given === "") return { wrong: `\`${name}\` must be of the type ${type}.` };
  }
  return { value: value as T };
}
