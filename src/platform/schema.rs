//! JSON Schemas of types that are read and written by hand.

/// Gives a type a schema, written where the type is used (`inline`) or once under its name (`named`).
macro_rules! schema {
    (inline $name:ident, $schema:expr) => {
        $crate::platform::schema!($name, true, |_| $schema);
    };
    (named $name:ident, $schema:expr) => {
        $crate::platform::schema!($name, false, $schema);
    };
    ($name:ident, $inline:literal, $schema:expr) => {
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                $inline
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema = $schema;
                schema(generator)
            }
        }
    };
}
pub(crate) use schema;
