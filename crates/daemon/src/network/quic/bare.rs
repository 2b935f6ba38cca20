//! What the transport can do at most: bytes over one stream with nothing around them, to measure transfers against.

use std::time::{Duration, Instant};

use iroh::{EndpointAddr, TransportAddr};

use super::{Settings, endpoint};
use crate::identity::Identity;

const ALPN: &[u8] = b"shoal/bare";
/// Bytes that are written and read at once.
const PART: usize = 64 << 10;

/// How long so many bytes take between two sockets on this machine.
pub fn measure(bytes: u64) -> Result<Duration, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(stream(bytes))
}

async fn stream(bytes: u64) -> Result<Duration, String> {
    let settings = Settings { bind: ([127, 0, 0, 1], 0).into(), ..Settings::default() };
    let (from, to) = (Identity::generate(), Identity::generate());
    let sender = endpoint(&settings, &from, vec![]).await.map_err(|error| error.to_string())?;
    let receiver = endpoint(&settings, &to, vec![ALPN.to_vec()]).await.map_err(|error| error.to_string())?;
    let sockets = receiver.bound_sockets().into_iter().map(TransportAddr::Ip);
    let there = EndpointAddr::from_parts(receiver.id(), sockets);
    let takes = receiver.clone();
    let reading = tokio::spawn(async move {
        let incoming = takes.accept().await.ok_or("nobody came")?;
        let conn = incoming.await.map_err(|error| error.to_string())?;
        let mut stream = conn.accept_uni().await.map_err(|error| error.to_string())?;
        let mut part = vec![0; PART];
        let mut count = 0;
        while let Some(read) = stream.read(&mut part).await.map_err(|error| error.to_string())? {
            count += read as u64;
        }
        conn.close(0_u32.into(), b"done");
        Ok::<u64, String>(count)
    });
    let conn = sender.connect(there, ALPN).await.map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut stream = conn.open_uni().await.map_err(|error| error.to_string())?;
    let part = vec![7; PART];
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(PART).min(PART);
        stream.write_all(&part[..now]).await.map_err(|error| error.to_string())?;
        left -= now as u64;
    }
    stream.finish().map_err(|error| error.to_string())?;
    let count = reading.await.map_err(|error| error.to_string())??;
    let took = began.elapsed();
    sender.close().await;
    receiver.close().await;
    if count == bytes { Ok(took) } else { Err(format!("{count} of {bytes} bytes came")) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_bytes_come() {
        assert!(super::measure(1_000_000).is_ok());
    }
}
