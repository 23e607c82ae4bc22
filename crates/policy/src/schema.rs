//! JSON Schemas of the input formats, generated from the types that read them.

use schemars::schema_for;
use serde_json::Value;

use crate::source::{KitV1, KitV2, PolicyDocument, PresetDocument, SrtSettings};

/// Schema of our own policy format.
pub fn policy() -> Value {
    schema_for!(PolicyDocument).to_value()
}

/// Schema of a preset's file.
pub fn preset() -> Value {
    schema_for!(PresetDocument).to_value()
}

/// Schema of srt settings.
pub fn srt_settings() -> Value {
    schema_for!(SrtSettings).to_value()
}

/// Schema of a sandbox kit's `spec.yaml`, version 1.
pub fn kit_v1() -> Value {
    schema_for!(KitV1).to_value()
}

/// Schema of a sandbox kit's `spec.yaml`, version 2.
pub fn kit_v2() -> Value {
    schema_for!(KitV2).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_describe_their_fields() {
        let policy = policy();
        assert_eq!(policy["additionalProperties"], false);
        assert!(policy["properties"]["network"].is_object());
        assert!(
            policy["$defs"]["NetworkDocument"]["properties"]["hostPorts"]["description"]
                .is_string()
        );
        let srt = srt_settings();
        assert_eq!(srt["required"], serde_json::json!(["network"]));
        assert!(srt["$defs"]["SrtNetwork"]["properties"]["allowedDomains"].is_object());
        assert!(kit_v1()["properties"]["network"].is_object());
        assert_eq!(
            kit_v2()["required"],
            serde_json::json!(["schemaVersion", "kind", "name"])
        );
    }
}
