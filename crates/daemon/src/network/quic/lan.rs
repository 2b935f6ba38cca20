//! The LAN: nodes say there where they are, and those that are not where they were are looked for.
//!
//! Anybody on a LAN can say anything. So only addresses are believed, which a dial tries and whose owner has to show its
//! key; a relay is not, since trying one means to speak with it.

use std::pin::Pin;
use std::time::Duration;

use iroh::EndpointId;
use iroh::address_lookup::{AddressLookup, EndpointData, EndpointInfo, Error, Item};
use iroh_mdns_address_lookup::MdnsAddressLookup;
use tokio_stream::{Stream, StreamExt};

/// What nodes are called on a LAN, so that other programs let them be.
const NAME: &str = "shoal";
/// How often nodes of a LAN ask who is there, all of them together. About three answer each time: in a small grid a node is
/// found while a dial lasts, in a large one by the next dials.
const CADENCE: Duration = Duration::from_secs(1);

/// Has an endpoint look for others on the LAN. Without it a node works as well, where others are where they were.
///
/// A known limit: what answers look-ups keeps a little of each until the endpoint is closed.
pub(super) fn look(endpoint: &iroh::Endpoint) {
    let added = || {
        let mdns = MdnsAddressLookup::builder().service_name(NAME).discovery_cadence(CADENCE);
        let mdns = mdns.build(endpoint.id()).map_err(|error| super::chain_of(&error))?;
        endpoint.address_lookup().map_err(|error| super::chain_of(&error))?.add(Lan(mdns));
        Ok::<(), String>(())
    };
    if let Err(why) = added() {
        tracing::warn!("`network.lan`: nodes are not looked for on the LAN: {why}");
    }
}

/// What the LAN says, without relays.
#[derive(Debug)]
struct Lan(MdnsAddressLookup);

impl AddressLookup for Lan {
    fn publish(&self, data: &EndpointData) {
        let mut data = data.clone();
        data.clear_relay_urls();
        self.0.publish(&data);
    }

    fn resolve(
        &self,
        endpoint: EndpointId,
    ) -> Option<Pin<Box<dyn Stream<Item = Result<Item, Error>> + Send + 'static>>> {
        let found = self.0.resolve(endpoint)?;
        Some(Box::pin(found.map(|item| item.map(without_relays))))
    }
}

fn without_relays(item: Item) -> Item {
    let addresses = item.ip_addrs().copied().collect();
    let info = EndpointInfo::new(item.endpoint_id()).with_ip_addrs(addresses);
    Item::new(info, item.provenance(), item.last_updated())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_that_somebody_on_the_lan_names_is_not_believed() {
        let id = iroh::SecretKey::from_bytes(&[7; 32]).public();
        let address = "192.0.2.7:4433".parse().unwrap();
        let info = EndpointInfo::new(id)
            .with_ip_addrs(vec![address])
            .with_relay_url("http://192.0.2.1:3340".parse().unwrap());
        let item = without_relays(Item::new(info, "mdns", None));
        assert_eq!(item.relay_urls().count(), 0);
        assert_eq!(item.ip_addrs().collect::<Vec<_>>(), [&address]);
    }
}
