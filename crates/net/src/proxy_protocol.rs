//! Reads a PROXY protocol header at the start of a connection, to its last byte and not beyond.

use std::io;
use std::net::IpAddr;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use dualgauge_transport::proxy_protocol::{
    MOST, ProxyHeaderDecoder, ProxyHeaderStep, ProxyProtocolSource,
};

/// Returns the client address of a connection from a proxy. The caller has checked that it trusts `peer`, and applies
/// the timeout.
///
/// # Errors
/// Fails if the peer sends no valid header.
pub async fn client_address(stream: &mut TcpStream, peer: IpAddr) -> io::Result<IpAddr> {
    let mut decoder = ProxyHeaderDecoder::default();
    let mut read = [0; MOST];
    let mut received = 0;
    loop {
        match decoder.take(&read[..received]).map_err(io::Error::other)? {
            ProxyHeaderStep::Over(ProxyProtocolSource::Peer) => return Ok(peer),
            ProxyHeaderStep::Over(ProxyProtocolSource::Client(client)) => return Ok(client),
            ProxyHeaderStep::Wants(wanted) => {
                received = stream.read(&mut read[..wanted.min(MOST)]).await?;
                if received == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
}
