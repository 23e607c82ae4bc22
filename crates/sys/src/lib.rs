//! sys.
#![allow(unsafe_code)]
