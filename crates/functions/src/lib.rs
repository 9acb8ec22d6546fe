//! Index functions, projections and patches: C# LINQ and JavaScript, compiled and run over documents.
#![forbid(unsafe_code)]
