//! Opens a trace, plain or compressed, and hands out its lines.
//!
//! What a file is shows in its first bytes, not in its name. Lines are read into one buffer, used again and again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use super::error::{Fault, WorkloadError};

/// The longest line read: archives list hundreds of machines in one, but nobody writes a megabyte.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// What unpacking an xz file may take; the highest preset of xz needs 65 MiB.
const XZ_MEMORY_BYTES_MAX: u64 = 256 << 20;
const BUFFER_BYTES: usize = 128 << 10;

/// The lines of a trace, one after another.
pub(crate) struct Lines<'a> {
    file: String,
    packing: &'static str,
    reader: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    number: u64,
    /// Lines that ended as DOS ends them.
    pub(crate) crlf: u64,
}

impl Lines<'static> {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Lines<'static>, WorkloadError> {
        let name = path.display().to_string();
        let wrong = |cause| WorkloadError::Open { file: name.clone(), cause };
        let file = File::open(path).map_err(wrong)?;
        if file.metadata().map_err(wrong)?.is_dir() {
            return Err(wrong(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        Lines::over(&name, file)
    }
}

impl<'a> Lines<'a> {
    /// Reads from anything; `name` is what errors call it.
    pub(crate) fn over(name: &str, mut bytes: impl Read + 'a) -> Result<Lines<'a>, WorkloadError> {
        let mut head = Vec::new();
        (&mut bytes).take(16).read_to_end(&mut head).map_err(|cause| WorkloadError::Read {
            file: name.to_owned(),
            line: 0,
            cause,
        })?;
        let packed = |what| Err(WorkloadError::Packed { file: name.to_owned(), what });
        let is = |magic: &[u8]| head.starts_with(magic);
        let (gzip, xz) = (is(b"\x1f\x8b"), is(b"\xfd7zXZ\0"));
        if is(b"PK\x03\x04") {
            return packed("a zip archive");
        } else if is(b"SQLite format 3") {
            return packed("an SQLite database");
        } else if is(b"BZh") {
            return packed("compressed with bzip2");
        } else if is(b"\x28\xb5\x2f\xfd") {
            return packed("compressed with zstd");
        }

        let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(head).chain(bytes));
        let (packing, reader): (_, Box<dyn BufRead + 'a>) = if gzip {
            ("gzip", Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(whole))))
        } else if xz {
            let stream = Stream::new_stream_decoder(XZ_MEMORY_BYTES_MAX, CONCATENATED).map_err(|cause| {
                WorkloadError::Read { file: name.to_owned(), line: 0, cause: cause.into() }
            })?;
            ("xz", Box::new(BufReader::with_capacity(BUFFER_BYTES, XzDecoder::new_stream(whole, stream))))
        } else {
            ("plain", Box::new(whole))
        };
        let line = Vec::with_capacity(1024);
        Ok(Lines { file: name.to_owned(), packing, reader, line, number: 0, crlf: 0 })
    }

    /// Goes to the next line; false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, WorkloadError> {
        self.line.clear();
        // One byte more than allowed tells a line that just fits from one that does not.
        let limited = (&mut self.reader).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut self.line);
        let read = limited.map_err(|cause| self.cannot_read(cause))?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if read as u64 > LINE_BYTES_MAX {
            return Err(self.fault(Fault::TooLong { max: LINE_BYTES_MAX }));
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
            self.crlf += 1;
        }
        Ok(true)
    }

    /// What the first line that is not blank starts with, without going there.
    pub(crate) fn first_byte(&mut self) -> Result<Option<u8>, WorkloadError> {
        let visible = |buffer: &[u8]| buffer.iter().copied().find(|byte| !byte.is_ascii_whitespace());
        match self.reader.fill_buf() {
            Ok(buffer) => Ok(visible(buffer)),
            Err(cause) => Err(self.cannot_read(cause)),
        }
    }

    /// The line, without its end.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// The number of the line, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What errors call the file.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// The error that names this line.
    pub(crate) fn fault(&self, fault: Fault) -> WorkloadError {
        WorkloadError::Line { file: self.file.clone(), line: self.number, fault }
    }

    fn cannot_read(&self, cause: io::Error) -> WorkloadError {
        let (file, line) = (self.file.clone(), self.number);
        match cause.kind() {
            io::ErrorKind::UnexpectedEof => WorkloadError::Truncated { file, packing: self.packing, line },
            _ => WorkloadError::Read { file, line, cause },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn lines(bytes: &[u8]) -> Result<Vec<Vec<u8>>, WorkloadError> {
        let mut lines = Lines::over("t", bytes)?;
        let mut all = Vec::new();
        while lines.advance()? {
            all.push(lines.line().to_vec());
        }
        Ok(all)
    }

    fn text() -> Vec<u8> {
        (0..2_000u32).flat_map(|n| format!("{} {n}\n", n.wrapping_mul(2_654_435_761)).into_bytes()).collect()
    }

    #[test]
    fn packed_and_plain_give_the_same_lines() {
        let plain = lines(&text()).unwrap();
        assert_eq!(plain.len(), 2_000);
        assert_eq!(lines(&gzip(&text())).unwrap(), plain);
        assert_eq!(lines(&xz(&text())).unwrap(), plain);
        let twice = [xz(&text()), xz(&text())].concat();
        assert_eq!(lines(&twice).unwrap().len(), 4_000, "streams may be joined");
    }

    #[test]
    fn line_ends_of_any_system_are_taken_off() {
        let mut lines = Lines::over("t", &b"a\r\n\r\nb\nc"[..]).unwrap();
        let mut all = Vec::new();
        while lines.advance().unwrap() {
            all.push(lines.line().to_vec());
        }
        assert_eq!(all, [&b"a"[..], b"", b"b", b"c"]);
        assert_eq!(lines.crlf, 2);
    }

    #[test]
    fn file_cut_short_is_named_as_such() {
        for (packing, bytes) in [("gzip", gzip(&text())), ("xz", xz(&text()))] {
            for kept in [20, bytes.len() / 2, bytes.len() - 1] {
                let error = lines(&bytes[..kept]).unwrap_err();
                assert!(
                    matches!(error, WorkloadError::Truncated { packing: found, .. } if found == packing),
                    "{packing} cut to {kept}: {error}"
                );
            }
        }
    }

    #[test]
    fn damaged_file_is_an_error() {
        for mut bytes in [gzip(&text()), xz(&text())] {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            assert!(lines(&bytes).is_err());
        }
    }

    #[test]
    fn archive_of_files_is_refused_by_its_kind() {
        let error = lines(b"PK\x03\x04....").unwrap_err();
        assert!(error.to_string().contains("zip"), "{error}");
    }

    #[test]
    fn endless_line_is_refused() {
        let endless = vec![b'1'; LINE_BYTES_MAX as usize + 5];
        assert!(matches!(lines(&endless), Err(WorkloadError::Line { line: 1, .. })));
        assert_eq!(lines(&endless[..LINE_BYTES_MAX as usize]).unwrap().len(), 1);
    }
}
