//! By which address other hosts reach this one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// A socket for the ranks of this host only, or of all.
pub(super) fn listen(one_host: bool) -> std::io::Result<TcpListener> {
    let own = own(one_host);
    // On one address if it is clear which.
    let on = match own[..] {
        [one] => one,
        _ => Ipv4Addr::UNSPECIFIED.into(),
    };
    TcpListener::bind((on, 0))
}

/// The addresses of this host, the likeliest first; never none.
pub(super) fn own(one_host: bool) -> Vec<IpAddr> {
    let loopback = Ipv4Addr::LOCALHOST.into();
    if one_host {
        return vec![loopback];
    }
    let mut addresses: Vec<IpAddr> = towards(ANYWHERE).into_iter().collect();
    let table = std::fs::read_to_string("/proc/self/net/fib_trie").unwrap_or_default();
    for address in local_addresses(&table) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        addresses.push(loopback);
    }
    addresses
}

/// The address of this host that packets to another one carry. Sends nothing.
pub(super) fn towards(other: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match other {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(other).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// The addresses of a kernel's routing table that are the host's own.
fn local_addresses(table: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    let mut last = None;
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last.filter(|address| !address.is_loopback())
            && !found.contains(&IpAddr::V4(address))
        {
            found.push(IpAddr::V4(address));
        }
    }
    found
}

/// An address of no host, reached by the default route.
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_addresses_are_read_from_the_routing_table() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.77.0.0\n        /24 link UNICAST\n\
                     \x20    |-- 10.77.0.2\n        /32 host LOCAL\n\
                     \x20    |-- 127.0.0.1\n        /32 host LOCAL\n\
                     \x20    |-- 10.77.0.255\n        /32 link BROADCAST\n\
                     Local:\n     |-- 10.77.0.2\n        /32 host LOCAL\n";

        assert_eq!(local_addresses(table), [IpAddr::from([10, 77, 0, 2])]);
    }

    #[test]
    fn a_job_on_one_host_listens_on_the_loopback_address_only() {
        let listener = listen(true).unwrap();

        assert!(listener.local_addr().unwrap().ip().is_loopback());
        assert_eq!(towards(listener.local_addr().unwrap()), Some(own(true)[0]));
        assert!(!own(false).is_empty());
    }
}
