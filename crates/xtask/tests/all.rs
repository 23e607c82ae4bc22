//! What the workspace as a whole must look like, read from its own files.
#![forbid(unsafe_code)]

mod suite;
