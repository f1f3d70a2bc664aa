//! The OpenAPI document of the service: requests from their types, replies as declared here.

use super::api::{QueryRequest, SECOND_NAMES};
use super::service::ServiceOptions;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Schema of a reply, with the optional fields of all flows.
fn reply() -> Value {
    let nullable = |kind: &str| json!({"type": [kind, "null"]});
    let retrieved =
        "two-stage: all passages that were found, those that the answer cites among them, each like a source";
    json!({
        "type": "object",
        "required": ["answer", "sources", "confidence_score", "used_internal_kb", "used_external_kb", "session_id"],
        "properties": {
            "answer": {"type": "string"},
            "sources": {"type": "array", "items": {
                "type": "object",
                "required": ["kind", "id", "title", "url"],
                "properties": {
                    "kind": {"type": "string", "enum": ["internal", "external"]},
                    "id": {"type": "string"},
                    "title": nullable("string"),
                    "url": nullable("string"),
                    "filename": {"type": "string", "description": "two-stage, managed-rag: the document's file"},
                    "page": {"type": ["integer", "null"], "description": "managed-rag: the page, from 1"},
                    "text": {"type": "string", "description": "two-stage: the passage"},
                    "number": {"type": "integer", "minimum": 1, "description": "two-stage: `[n]` in the answer stands for it"},
                    "score": {"type": "number", "minimum": 0, "maximum": 1, "description": "two-stage: relevance by rank"}
                }
            }},
            "retrieved": {"type": "array", "items": {"type": "object"}, "description": retrieved},
            "confidence_score": nullable("number"),
            "used_internal_kb": {"type": "boolean"},
            "used_external_kb": {"type": "boolean"},
            "artifacts": {"type": "array", "description": "managed-rag: the files that the answer holds", "items": {
                "type": "object",
                "required": ["filename", "version", "mime_type", "description"],
                "properties": {
                    "filename": {"type": "string"},
                    "version": {"type": "integer", "minimum": 1},
                    "mime_type": {"type": "string"},
                    "description": {"type": "string"}
                }
            }},
            "session_id": {"type": "string"}
        }
    })
}

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["kind", "message"],
                "properties": {"kind": {"type": "string"}, "message": {"type": "string"}}
            },
            "session_id": {"type": "string", "description": "if the question belongs to a session that can continue"}
        }
    })
}

/// The OpenAPI document.
pub(super) fn document(options: &ServiceOptions, has_gateway: bool) -> Value {
    let settings = SchemaSettings::openapi3();
    let mut generator = settings.into_generator();
    let request = generator.subschema_for::<QueryRequest>();
    let mut schemas: serde_json::Map<String, Value> = generator.take_definitions(true);
    if let Some(request) = schemas.get_mut("QueryRequest") {
        for (first, second) in SECOND_NAMES {
            let mut same = request["properties"][first].clone();
            same["description"] = format!("Another name of `{first}`.").into();
            request["properties"][second] = same;
        }
        let required = |name| json!({"required": [name]});
        request["oneOf"] = json!([required("query"), required("message")]);
        if let Some(request) = request.as_object_mut() {
            request.remove("required");
        }
    }
    schemas.insert("Reply".into(), reply());
    schemas.insert("Error".into(), error());
    let failures = [
        ("400", "The request is not valid."),
        ("401", "The token is missing or wrong."),
        ("403", "A page in a browser, or a foreign name for this machine."),
        ("404", "Unknown session (`unknown_session`) or tenant (`unknown_tenant`)."),
        ("408", "The body did not arrive in time."),
        ("409", "Another question of the session is being answered (`session_busy`)."),
        ("410", "The session has ended (`session_expired`)."),
        ("413", "The request is too large."),
        ("415", "`Content-Type` is not `application/json`."),
        ("500", "The agent failed: its model, its documents, or what the model did; `kind` says which."),
        ("503", "Too many questions at the same time (`overloaded`)."),
        ("504", "The turn took too long (`timeout`)."),
    ];
    let mut responses = serde_json::Map::new();
    responses.insert(
        "200".into(),
        json!({
            "description": "The answer; with `Accept: text/event-stream`, `status` events and then `answer` or `error`.",
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/Reply"}},
                "text/event-stream": {"schema": {"type": "string"}}
            }
        }),
    );
    for (status, description) in failures {
        let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}});
        responses.insert(status.into(), json!({"description": description, "content": content}));
    }
    let plain = |summary: &str, kind: &str| json!({"get": {"summary": summary, "responses": {"200": {"description": summary, "content": {kind: {}}}}}});
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {"title": "ragcheck serve", "version": env!("CARGO_PKG_VERSION")},
        "paths": {
            "/api/chat/query": {"post": {
                "summary": "Ask one question",
                "requestBody": {"required": true, "content": {"application/json": {"schema": request}}},
                "responses": responses
            }},
            "/api/chat/sessions/{session}/artifacts/{file}": {"get": {
                "summary": "Download a file that an answer of the session holds",
                "parameters": [
                    {"name": "session", "in": "path", "required": true, "schema": {"type": "string"}},
                    {"name": "file", "in": "path", "required": true, "schema": {"type": "string"}},
                    {"name": "version", "in": "query", "description": "the newest where none is given", "schema": {"type": "integer", "minimum": 1}}
                ],
                "responses": {
                    "200": {"description": "The file", "content": {"text/markdown": {"schema": {"type": "string"}}}},
                    "404": {"description": "No such session (`unknown_session`), file or version (`unknown_artifact`).",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
                }
            }},
            "/health": plain("Whether the service is up", "application/json"),
            "/metrics": plain("Counters for Prometheus", "text/plain"),
            "/openapi.json": plain("This document", "application/json")
        },
        "components": {"schemas": schemas}
    });
    if has_gateway {
        let name = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
        let error = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}});
        document["paths"]["/gateway/download/{resource}/f/{field}/{file}"] = json!({"get": {
            "summary": "Download a document that an answer links to",
            "parameters": [name("resource"), name("field"), name("file")],
            "responses": {
                "200": {"description": "The document", "content": {"application/pdf": {}, "application/octet-stream": {}}},
                "404": {"description": "There is no such document (`unknown_file`).", "content": error},
                "502": {"description": "It cannot be fetched (`document_unavailable`).", "content": error},
                "503": {"description": "Too many requests at the same time (`overloaded`).", "content": error}
            }
        }});
    }
    if options.token.is_some() {
        document["components"]["securitySchemes"] = json!({"token": {"type": "http", "scheme": "bearer"}});
        document["security"] = json!([{"token": []}]);
    }
    if options.test_target {
        let done = json!({"200": {"description": "Forgotten"}});
        document["paths"]["/api/test/reset"] =
            json!({"post": {"summary": "Forget sessions and what was learned", "responses": done}});
    }
    document
}
