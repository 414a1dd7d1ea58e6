//! Reads a PROXY protocol header at the start of a connection, to its last byte and not beyond. Used by `listen`.

use std::io;
use std::net::IpAddr;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use dualgauge_model::client_ip::TrustedProxies;
use dualgauge_model::proxy_protocol::{
    MOST, ProxyHeaderDecoder, ProxyHeaderStep, ProxyProtocolSource,
};

/// Returns the client address of a connection from a trusted proxy. The caller applies the timeout.
///
/// # Errors
/// Fails if the peer is no trusted proxy, or sends no valid header.
pub(super) async fn client_address(
    stream: &mut TcpStream,
    peer: IpAddr,
    hops: &TrustedProxies,
) -> io::Result<IpAddr> {
    if !hops.trusts(peer) {
        return Err(io::Error::other("the peer is not a trusted proxy"));
    }
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
