//! Lists and outlines of files.

use shoal_daemon::depot::outline::{GROUP, groups};
use shoal_daemon::depot::{Manifest, Outline};
use shoal_model::Digest;

use super::choice;

/// A list of files, or the outline of one: its size in groups, its hash, and the rest.
pub fn depot(bytes: &[u8]) {
    let Some((choice, rest)) = choice(bytes) else { return };
    if choice % 2 == 0 {
        let Ok(manifest) = Manifest::read(rest) else { return };
        let _ = manifest.size();
        assert_eq!(Manifest::read(&manifest.bytes()), Ok(manifest));
        return;
    }
    let Some((size, rest)) = rest.split_first_chunk() else { return };
    let Some((digest, rest)) = rest.split_first_chunk() else { return };
    let size = u64::from_le_bytes(*size);
    // Sizes as they are, and such as would fit.
    for size in [size, rest.len() as u64 / 32 * GROUP] {
        if let Some(outline) = Outline::read(rest, size, &Digest(*digest)) {
            assert_eq!(outline.bytes(), rest);
            assert!(groups(size) == 1 || rest.len() as u64 == 32 * groups(size));
        }
    }
}
