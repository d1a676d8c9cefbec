//! What only tests use. Nothing here knows the product's types, so that it can judge the library and the
//! command alike.

pub mod bad_trees;
pub mod trees;
