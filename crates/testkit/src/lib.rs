//! What only tests use.
