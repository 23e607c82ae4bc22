//! JSON Schemas of the input formats, generated from the types that read them.

use schemars::schema_for;
use serde_json::Value;

use crate::source::{PolicyDocument, SrtSettings};

/// Schema of our own policy format.
pub fn policy() -> Value {
    schema_for!(PolicyDocument).to_value()
}

/// Schema of srt settings.
pub fn srt_settings() -> Value {
    schema_for!(SrtSettings).to_value()
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
        assert_eq!(
            srt["required"],
            serde_json::json!(["network", "filesystem"])
        );
        assert!(srt["$defs"]["SrtNetwork"]["properties"]["allowedDomains"].is_object());
    }
}
