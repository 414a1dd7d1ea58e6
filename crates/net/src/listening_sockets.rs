//! Opening of the listening sockets of the workers.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// The accept backlog of one worker.
const BACKLOG: i32 = 1024;

/// Opens the sockets of each worker: its own, or a share of the inherited ones. Each inherited socket goes to a
/// worker; if there are fewer of them than workers, some workers share one.
///
/// # Errors
/// Fails if the system refuses a socket.
pub fn open(
    address: SocketAddr,
    count: usize,
    inherited: &[TcpListener],
) -> io::Result<Vec<Vec<TcpListener>>> {
    if inherited.is_empty() {
        let address = reserve(address)?;
        return (0..count).map(|_| Ok(vec![bind(address)?])).collect();
    }
    let mut each: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
    for place in 0..inherited.len().max(count) {
        let listener = &inherited[place % inherited.len()];
        listener.set_nonblocking(true)?;
        each[place % count].push(listener.try_clone()?);
    }
    Ok(each)
}

/// Binds an address exclusively, and returns it with the actual port if the port was 0.
///
/// # Errors
/// Fails if the system refuses, for example with "address in use".
fn reserve(address: SocketAddr) -> io::Result<SocketAddr> {
    // Without SO_REUSEPORT: a second instance fails here instead of taking half of the connections.
    let socket = unbound(address)?;
    socket.bind(&address.into())?;
    socket
        .local_addr()?
        .as_socket()
        .ok_or_else(|| io::Error::other("the address is not an IP address"))
}

/// Binds one of several listeners on an address.
///
/// # Errors
/// Fails if the system refuses the socket.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = unbound(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn unbound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    Ok(socket)
}
