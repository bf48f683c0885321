//! The service as clients see it: a server on a port of its own, and requests over TCP.

mod authority;
mod bad_input;
mod documents;
mod hostile;
mod limits;
mod operation;
mod support;
