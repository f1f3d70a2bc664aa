#!/bin/sh
# An agent with curl and jq: one search of its own, then Chat Completions.
while read -r line; do
  question=$(printf %s "$line" | jq -r .message)
  body=$(jq -n --arg model "${MODEL:-gpt-4o-mini}" --arg question "$question" '{model: $model, messages: [
    {role: "system", content: "Answer from this: The helmet is free with every bicycle."}, {role: "user", content: $question}]}')
  curl -sf "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d "$body" |
    jq -c '{answer: .choices[0].message.content}'
done
