//! JSON Schemas of what may be written, for editors and for our own check of shape.

use super::{Criteria, Project, Rubric, Scenario};
use crate::catalogue::{Catalogues, DialectEntry};
use schemars::JsonSchema;
use serde_json::{Value, json};

/// The plain schema of a type.
pub fn of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// The schema of scenario files; flows, prompts and metrics are spelt out, names of tools are open.
pub fn scenario(catalogues: &Catalogues) -> Value {
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

/// The schema of criteria files.
pub fn criteria(catalogues: &Catalogues) -> Value {
    let mut schema = of::<Criteria>();
    put(&mut schema, "/$defs/Criterion/properties/metric/examples", metrics(catalogues));
    schema
}

/// The schema of the project file; dialects are spelt out.
pub fn project(catalogues: &Catalogues) -> Value {
    let mut schema = of::<Project>();
    let dialect = |one: &DialectEntry| json!({"const": one.name, "description": one.about});
    put(&mut schema, "/$defs/Provider/properties/dialect/oneOf", catalogues.dialects.iter().map(dialect).collect());
    schema
}

/// The schema of rubrics.
pub fn rubric() -> Value {
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
