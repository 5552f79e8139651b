//! Running the tools that others ask for.
