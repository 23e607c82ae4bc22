//! HTTP methods and paths as rules name them.

mod method;
mod path;

pub(crate) use method::is_token;
pub use method::{Method, MethodError, is_misspelt};
pub use path::{HttpPath, HttpPathError, PathPattern, PathPatternError};
