//! The PROXY header at the beginning of a connection: read to its last byte and not beyond.

use std::io;
use std::net::IpAddr;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::domain::client_ip::TrustedProxies;
use crate::domain::proxy_protocol::{
    MOST, ProxyHeaderDecoder, ProxyHeaderStep, ProxyProtocolSource,
};

/// Whom a connection comes from that a trusted hop has opened. The caller bounds the time.
///
/// # Errors
/// The peer is no trusted hop, or what it says is no header.
pub(super) async fn client(
    stream: &mut TcpStream,
    peer: IpAddr,
    hops: &TrustedProxies,
) -> io::Result<IpAddr> {
    if !hops.trusts(peer) {
        return Err(io::Error::other("its peer is no trusted hop"));
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
