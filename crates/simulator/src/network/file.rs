//! Reads a text file whole: plain, gzip or xz, told apart by their first bytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::error::Error;

/// The most bytes that a file may unpack to: a matrix of 8,000 hosts has about as many.
const BYTES_MAX: u64 = 512 << 20;

/// The text of a file, unpacked.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let unreadable = |source| Error::Unreadable { file: path.to_owned(), source };
    let mut packed = Vec::new();
    File::open(path).and_then(|file| read_bounded(file, &mut packed)).map_err(unreadable)?;
    unpack(packed).map_err(unreadable)
}

fn unpack(packed: Vec<u8>) -> io::Result<String> {
    let mut unpacked = Vec::new();
    if packed.starts_with(&[0x1f, 0x8b]) {
        read_bounded(flate2::read::MultiGzDecoder::new(packed.as_slice()), &mut unpacked)?;
    } else if packed.starts_with(b"\xfd7zXZ\0") {
        read_bounded(liblzma::read::XzDecoder::new_multi_decoder(packed.as_slice()), &mut unpacked)?;
    } else {
        unpacked = packed;
    }
    String::from_utf8(unpacked).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text"))
}

fn read_bounded(source: impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    source.take(BYTES_MAX + 1).read_to_end(bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        let what = format!("it is longer than {} MiB", BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_gzip_and_xz_give_the_same_text() {
        let text = "1,2\n3,4\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
        xz.write_all(text.as_bytes()).unwrap();

        assert_eq!(unpack(text.into()).unwrap(), text);
        assert_eq!(unpack(gzip.finish().unwrap()).unwrap(), text);
        assert_eq!(unpack(xz.finish().unwrap()).unwrap(), text);
    }

    #[test]
    fn missing_file_is_named() {
        let error = read_text(Path::new("no/such/file.csv")).unwrap_err().to_string();
        assert!(error.starts_with("no/such/file.csv: cannot be read: "), "{error}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_text_or_an_error(
            magic in prop::sample::select(vec![&b""[..], &[0x1f, 0x8b, 8], b"\xfd7zXZ\0"]),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = unpack([magic, &bytes].concat());
        }
    }
}
