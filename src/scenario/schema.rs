//! JSON Schemas of user-written files, for editors and for the check of shape.

use super::{Criteria, Project, Rubric, Scenario};
use crate::settings::catalogue::{Catalogues, DialectEntry};
use schemars::JsonSchema;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The plain schema of a type.
pub(crate) fn of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// The schema of scenario files; lists all flows, prompts and metrics, but no tool names.
pub(crate) fn scenario(catalogues: &Catalogues) -> Value {
    let mut schema = of::<Scenario>();
    let flows = json!(catalogues.flow_names().collect::<Vec<_>>());
    put(&mut schema, "/properties/flow/enum", flows.clone());
    put(&mut schema, "/$defs/Variant/properties/flow/enum", flows);
    let names = json!({"enum": catalogues.prompts()});
    put(&mut schema, "/properties/prompts/propertyNames", names.clone());
    put(&mut schema, "/$defs/Variant/properties/prompts/propertyNames", names);
    put(&mut schema, "/$defs/Criterion/properties/metric/examples", metrics(catalogues));
    schema
}

/// The schema of scenario files for editors: in a case, a text with table columns may replace any value.
pub(crate) fn scenario_with_columns(catalogues: &Catalogues) -> Value {
    let mut schema = scenario(catalogues);
    let Some(mut defs) = schema.get("$defs").and_then(Value::as_object).cloned() else { return schema };
    let written = Value::Object(defs.clone());
    let (mut open, mut seen) = (vec!["Case".to_owned()], BTreeSet::new());
    while let Some(name) = open.pop() {
        let Some(def) = defs.get(&name).filter(|_| name != "CaseTable" && seen.insert(name.clone())).cloned() else {
            continue;
        };
        named(&def, &mut open);
        if let Some(relaxed) = defs.get_mut(&name) {
            relax(relaxed, &written);
        }
    }
    let about = "A column of the case's table, `{{ column }}`, or a text with such.";
    defs.insert("Columns".to_owned(), json!({"type": "string", "pattern": r"\{\{.+\}\}", "description": about}));
    put(&mut schema, "/$defs", Value::Object(defs));
    schema
}

/// Collects the definitions that a schema refers to.
fn named(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            let name = map.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
            found.extend(name.map(str::to_owned));
            map.values().for_each(|value| named(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, found)),
        _ => {}
    }
}

/// Allows a text with columns for each value of a map that otherwise takes no text.
fn relax(schema: &mut Value, defs: &Value) {
    for key in ["oneOf", "anyOf"] {
        let alternatives = schema.get_mut(key).and_then(Value::as_array_mut);
        alternatives.into_iter().flatten().for_each(|one| relax(one, defs));
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for value in properties.values_mut().filter(|value| !takes_any_text(value, defs)) {
        let mut own = value.take();
        let mut relaxed = json!({});
        for key in ["description", "default"] {
            if let Some(said) = own.as_object_mut().and_then(|own| own.remove(key)) {
                relaxed[key] = said;
            }
        }
        relaxed["anyOf"] = json!([own, {"$ref": "#/$defs/Columns"}]);
        *value = relaxed;
    }
}

fn takes_any_text(schema: &Value, defs: &Value) -> bool {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
    if let Some(name) = reference {
        return defs.get(name).is_some_and(|def| takes_any_text(def, defs));
    }
    let alternatives = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)).and_then(Value::as_array);
    if let Some(alternatives) = alternatives {
        return alternatives.iter().any(|one| takes_any_text(one, defs));
    }
    let types = schema.get("type");
    let is_text = match types {
        None => schema.get("const").is_none() && schema.get("enum").is_none(),
        Some(Value::Array(types)) => types.iter().any(|name| name == "string"),
        Some(name) => name == "string",
    };
    is_text && ["pattern", "const", "enum"].iter().all(|key| schema.get(*key).is_none())
}

/// The schema of criteria files.
pub(crate) fn criteria(catalogues: &Catalogues) -> Value {
    let mut schema = of::<Criteria>();
    put(&mut schema, "/$defs/Criterion/properties/metric/examples", metrics(catalogues));
    schema
}

/// The schema of the project file; lists all dialects.
pub(crate) fn project(catalogues: &Catalogues) -> Value {
    let mut schema = of::<Project>();
    let dialect = |one: &DialectEntry| json!({"const": one.name, "description": one.about});
    put(&mut schema, "/$defs/Provider/properties/dialect/oneOf", catalogues.dialects.iter().map(dialect).collect());
    schema
}

/// The schema of rubrics.
pub(crate) fn rubric() -> Value {
    of::<Rubric>()
}

fn metrics(catalogues: &Catalogues) -> Value {
    catalogues.metrics.iter().map(|entry| entry.name).collect()
}

/// Sets `value` at a pointer whose parent exists.
fn put(schema: &mut Value, pointer: &str, value: Value) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(map)) = schema.pointer_mut(parent) {
        map.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_spelt_out_in_the_schema() {
        let schema = scenario(&crate::catalogues());
        for pointer in [
            "/properties/flow/enum",
            "/$defs/Variant/properties/flow/enum",
            "/properties/prompts/propertyNames",
            "/$defs/Variant/properties/prompts/propertyNames",
            "/$defs/Criterion/properties/metric/examples",
        ] {
            assert!(schema.pointer(pointer).is_some(), "{pointer} is not in {schema:#}");
        }
    }
}
