//! Reads a PROXY protocol header at the start of a connection, to its last byte and not beyond.

use std::io;
use std::net::IpAddr;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::domain::client_ip::TrustedProxies;
use crate::domain::proxy_protocol::{
    MOST, ProxyHeaderDecoder, ProxyHeaderStep, ProxyProtocolSource,
};

/// Returns the client address of a connection from a trusted proxy. The caller applies the timeout.
///
/// # Errors
/// Fails if the peer is no trusted proxy, or sends no valid header.
pub(super) async fn client(
    stream: &mut TcpStream,
    peer: IpAddr,
    hops: &TrustedProxies,
) -> io::Result<IpAddr> {
    if !hops.trusts(peer) {
        return Err(io::Error::other("the peer is not a trusted proxy"));
    }
    let mut preface = ProxyHeaderDecoder::default();
    let mut read = [0; MOST];
    let mut came = 0;
    loop {
        match preface.take(&read[..came]).map_err(io::Error::other)? {
            ProxyHeaderStep::Over(ProxyProtocolSource::Peer) => return Ok(peer),
            ProxyHeaderStep::Over(ProxyProtocolSource::Client(client)) => return Ok(client),
            ProxyHeaderStep::Wants(wanted) => {
                came = stream.read(&mut read[..wanted.min(MOST)]).await?;
                if came == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
}
