//! The files of `project/` and `demo/`. Written by `UPDATE=1 cargo test --test suite starter`.

macro_rules! texts {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!($folder, "/", $name)))),*]
    };
}

/// Path below `project/`, and text.
pub(super) static FILES: &[(&str, &str)] = texts! { "project":
    "README.md"
    "dot-gitattributes"
    "dot-github/workflows/ragcheck.yml"
    "dot-gitignore"
    "knowledge/bikes/bookings.md"
    "knowledge/bikes/equipment.md"
    "knowledge/bikes/hire.md"
    "knowledge/bikes/repairs.md"
    "knowledge/bikes/returns.md"
    "ragcheck.yaml"
    "recordings/questions/battery-range/tool-rag.short.1.yaml"
    "recordings/questions/battery-range/tool-rag.strict.1.yaml"
    "recordings/questions/blobs/2c947e0de2cbe3b7.txt"
    "recordings/questions/blobs/d0347d0aaeaa4a93.json"
    "recordings/questions/cancellation/tool-rag.short.1.yaml"
    "recordings/questions/cancellation/tool-rag.strict.1.yaml"
    "recordings/questions/child-seat/tool-rag.short.1.yaml"
    "recordings/questions/child-seat/tool-rag.strict.1.yaml"
    "recordings/questions/deposit/tool-rag.short.1.yaml"
    "recordings/questions/deposit/tool-rag.strict.1.yaml"
    "recordings/questions/flat-tyre/tool-rag.short.1.yaml"
    "recordings/questions/flat-tyre/tool-rag.strict.1.yaml"
    "recordings/questions/group-booking/tool-rag.short.1.yaml"
    "recordings/questions/group-booking/tool-rag.strict.1.yaml"
    "recordings/questions/helmet/tool-rag.short.1.yaml"
    "recordings/questions/helmet/tool-rag.strict.1.yaml"
    "recordings/questions/late-return/tool-rag.short.1.yaml"
    "recordings/questions/late-return/tool-rag.strict.1.yaml"
    "recordings/questions/minimum-age/tool-rag.short.1.yaml"
    "recordings/questions/minimum-age/tool-rag.strict.1.yaml"
    "recordings/questions/return-after-closing/tool-rag.short.1.yaml"
    "recordings/questions/return-after-closing/tool-rag.strict.1.yaml"
    "scenarios/criteria.yaml"
    "scenarios/prompts/short.md"
    "scenarios/prompts/strict.md"
    "scenarios/questions.yaml"
    "simulator/behaviour.yaml"
    "simulator/rates.yaml"
};

/// The same of the files of `demo/`, which `ragcheck demo` has in place of the project's.
pub(super) static DEMO: &[(&str, &str)] = texts! { "demo":
    "knowledge/bikes/bookings.md"
    "ragcheck.yaml"
    "recordings/questions/blobs/2c947e0de2cbe3b7.txt"
    "recordings/questions/blobs/d0347d0aaeaa4a93.json"
    "recordings/questions/deposit/tool-rag.strict.1.yaml"
    "recordings/questions/deposit/tool-rag.strict.2.yaml"
    "recordings/questions/deposit/tool-rag.strict.3.yaml"
    "recordings/questions/group-booking/tool-rag.strict.1.yaml"
    "recordings/questions/group-booking/tool-rag.strict.2.yaml"
    "recordings/questions/group-booking/tool-rag.strict.3.yaml"
    "recordings/questions/helmet/tool-rag.strict.1.yaml"
    "recordings/questions/helmet/tool-rag.strict.2.yaml"
    "recordings/questions/helmet/tool-rag.strict.3.yaml"
    "recordings/questions/late-return/tool-rag.strict.1.yaml"
    "recordings/questions/late-return/tool-rag.strict.2.yaml"
    "recordings/questions/late-return/tool-rag.strict.3.yaml"
    "scenarios/questions.yaml"
    "simulator/behaviour.yaml"
};
