//! The systems whose routes lie in `config/`, end to end: each table against fakes that answer what the real
//! server was seen to answer, its oddities included.
//!
//! A fake is a scripted upstream in `fake_*.rs`; it knows nothing of the table. Where both sides exist, a test asks
//! the fake of the caller's own side directly, and wants the same from the proxy before the other one.

mod agent;
mod asked;
mod calls;
mod cdev;
mod cdev_dual;
mod cdev_socket;
mod fake_agent;
mod fake_cdev;
mod fake_cdev_dual;
mod fake_cdev_socket;
mod fake_kuzu;
mod fake_kuzu_child;
mod fake_pierre;
mod fake_sqlite;
mod kuzu;
mod kuzu_child;
mod mcp_clients;
mod mcp_face;
mod pierre;
mod pierre_sockets;
mod rest_as_mcp;
mod servers;
mod sqlite;
mod streams;
mod tables;
