// An agent with Go's standard library alone: Chat Completions with a tool.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

type object = map[string]any

type reply struct {
	Choices []struct {
		Message struct {
			Content   string          `json:"content"`
			ToolCalls json.RawMessage `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
}

const found = `{"chunks":[{"id":"helmet.md#1","text":"The helmet is free with every bicycle."}]}`

func complete(messages []object) (answered reply, err error) {
	schema := object{"type": "object", "properties": object{"query": object{"type": "string"}}, "required": []string{"query"}}
	tool := object{"type": "function", "function": object{"name": "search_docs", "description": "Searches the documents.", "parameters": schema}}
	body, _ := json.Marshal(object{"model": os.Getenv("MODEL"), "messages": messages, "tools": []object{tool}})
	request, _ := http.NewRequest("POST", os.Getenv("OPENAI_BASE_URL")+"/chat/completions", bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answered, err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		return answered, fmt.Errorf("the model answered %s", response.Status)
	}
	return answered, json.NewDecoder(response.Body).Decode(&answered)
}

func answer(question string) (string, error) {
	messages := []object{{"role": "system", "content": "Always search the documents first."}, {"role": "user", "content": question}}
	for {
		answered, err := complete(messages)
		if err != nil {
			return "", err
		}
		said := answered.Choices[0].Message
		var calls []struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(said.ToolCalls, &calls)
		if len(calls) == 0 {
			return said.Content, nil
		}
		messages = append(messages, object{"role": "assistant", "content": nil, "tool_calls": said.ToolCalls})
		for _, call := range calls {
			messages = append(messages, object{"role": "tool", "tool_call_id": call.ID, "content": found})
		}
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var turn struct{ Message string }
		_ = json.Unmarshal(lines.Bytes(), &turn)
		text, err := answer(turn.Message)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		written, _ := json.Marshal(object{"answer": text})
		fmt.Println(string(written))
	}
}
