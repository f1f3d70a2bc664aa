// A help desk for parcels: a function that a test can call, with the `openai` client as it is. Nothing here knows ragcheck.
import OpenAI from 'openai';

const MODEL = 'gpt-4o-mini';
const PROMPT = 'You answer questions about parcels. Look an order up with lookup_order before you say anything about it.';
const ORDERS = { 'A-1042': 'on its way, comes on 24 November', 'A-1077': 'lost between two depots' };
const parameters = { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] };
const tools = [
  { type: 'function', function: { name: 'lookup_order', description: 'Looks an order up by its number.', parameters } },
];

export async function answer(question) {
  const client = new OpenAI();
  const messages = [
    { role: 'system', content: PROMPT },
    { role: 'user', content: question },
  ];
  for (let step = 0; step < 5; step += 1) {
    const { choices } = await client.chat.completions.create({ model: MODEL, messages, tools });
    const said = choices[0].message;
    messages.push(said);
    if (!said.tool_calls?.length) return said.content;
    for (const call of said.tool_calls) {
      const { order_id } = JSON.parse(call.function.arguments);
      const content = ORDERS[order_id] ?? `there is no order ${order_id}`;
      messages.push({ role: 'tool', tool_call_id: call.id, content });
    }
  }
  throw new Error('no answer within 5 steps');
}
