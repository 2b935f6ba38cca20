//! How much memory this process has and had.

/// Resident memory of this process, in bytes; none where the system does not tell.
pub fn resident() -> Option<u64> {
    status("VmRSS:")
}

/// The most resident memory that this process ever had, in bytes; none where the system does not tell.
pub fn peak() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
