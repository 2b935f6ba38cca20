//! The outputs of tasks: read from their files, from any byte on, and followed while their tasks run.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use axum::body::Bytes;

/// Bytes that are read at once.
const READ: usize = 32 << 10;
/// How far back the last lines are looked for.
const TAIL_BYTES_MAX: u64 = 16 << 20;

/// An output file, and how far it was read.
pub struct Output {
    file: File,
    at: u64,
}

impl Output {
    /// Opens an output at a byte, or at so many lines before its end.
    pub fn open(path: &Path, offset: u64, tail: Option<u32>) -> io::Result<Output> {
        // A task may have put a link there, to what its user must not read, or a pipe that never ends.
        let no_follow = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let mut file = File::options().read(true).custom_flags(no_follow).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the task has put something else there"));
        }
        let at = match tail {
            None => offset,
            Some(lines) => lines_from_end(&mut file, lines)?.max(offset),
        };
        Ok(Output { file, at })
    }

    /// What has come since; nothing at the end of what there is for now.
    pub fn next(&mut self) -> io::Result<Bytes> {
        let length = self.file.metadata()?.len();
        if self.at > length {
            // It was cut back: what comes now is behind the cut.
            self.at = length;
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = vec![0; READ];
        let read = self.file.read(&mut bytes)?;
        bytes.truncate(read);
        self.at += read as u64;
        Ok(bytes.into())
    }
}

/// Where the last lines begin; a line without an end counts.
fn lines_from_end(file: &mut File, lines: u32) -> io::Result<u64> {
    let length = file.metadata()?.len();
    if lines == 0 {
        return Ok(length);
    }
    let (mut seen, mut end) = (0, length);
    let stop = length.saturating_sub(TAIL_BYTES_MAX);
    let mut bytes = vec![0; READ];
    while end > stop {
        let start = end.saturating_sub(READ as u64).max(stop);
        file.seek(SeekFrom::Start(start))?;
        let part = &mut bytes[..(end - start) as usize];
        file.read_exact(part)?;
        for place in (0..part.len()).rev() {
            let at = start + place as u64;
            if part[place] == b'\n' && at + 1 < length {
                seen += 1;
                if seen == lines {
                    return Ok(at + 1);
                }
            }
        }
        end = start;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(path: &Path, offset: u64, tail: Option<u32>) -> String {
        let mut output = Output::open(path, offset, tail).unwrap();
        let mut all = Vec::new();
        loop {
            let part = output.next().unwrap();
            if part.is_empty() {
                return String::from_utf8(all).unwrap();
            }
            all.extend_from_slice(&part);
        }
    }

    #[test]
    fn output_is_read_from_a_byte_or_from_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(read(&path, 0, None), "one\ntwo\nthree\n");
        assert_eq!(read(&path, 4, None), "two\nthree\n");
        assert_eq!(read(&path, 99, None), "");
        assert_eq!(read(&path, 0, Some(1)), "three\n");
        assert_eq!(read(&path, 0, Some(2)), "two\nthree\n");
        assert_eq!(read(&path, 0, Some(9)), "one\ntwo\nthree\n");
        assert_eq!(read(&path, 0, Some(0)), "");
        std::fs::write(&path, "one\ntwo").unwrap();
        assert_eq!(read(&path, 0, Some(1)), "two");
        std::fs::write(&path, "x\n".repeat(100_000)).unwrap();
        assert_eq!(read(&path, 0, Some(50_000)).len(), 100_000);
    }

    #[test]
    fn output_that_grows_or_is_cut_goes_on_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        let mut file = File::options().create(true).append(true).open(&path).unwrap();
        let mut output = Output::open(&path, 0, None).unwrap();
        file.write_all(b"12345").unwrap();
        assert_eq!(output.next().unwrap(), "12345");
        file.set_len(2).unwrap();
        assert_eq!(output.next().unwrap(), "");
        file.write_all(b"end").unwrap();
        assert_eq!(output.next().unwrap(), "end");
    }

    #[test]
    fn links_pipes_and_folders_are_no_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(Output::open(&path, 0, None).is_err());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(Output::open(&path, 0, None).is_err());
    }
}
