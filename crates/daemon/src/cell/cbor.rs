//! How a cell's paths and arguments travel, which need not be text.

/// CBOR of paths, which need not be text.
pub(crate) mod path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::PathBuf;

    use minicbor::decode::{self, Decoder};
    use minicbor::encode::{self, Encoder, Write};

    pub(crate) fn encode<C, W: Write>(
        path: &std::path::Path,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.bytes(path.as_os_str().as_bytes())?.ok()
    }

    pub(crate) fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<PathBuf, decode::Error> {
        Ok(OsString::from_vec(d.bytes()?.to_vec()).into())
    }
}

/// CBOR of a path that may be missing.
pub(crate) mod maybe_path {
    use std::path::PathBuf;

    use minicbor::decode::{self, Decoder};
    use minicbor::encode::{self, Encoder, Write};

    pub(crate) fn encode<C, W: Write>(
        path: &Option<PathBuf>,
        e: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        match path {
            Some(path) => super::path::encode(path, e, ctx),
            None => e.null()?.ok(),
        }
    }

    pub(crate) fn decode<C>(d: &mut Decoder<'_>, ctx: &mut C) -> Result<Option<PathBuf>, decode::Error> {
        match d.datatype()? {
            minicbor::data::Type::Null => d.null().map(|()| None),
            _ => super::path::decode(d, ctx).map(Some),
        }
    }
}

/// CBOR of several paths.
pub(crate) mod paths {
    use std::path::PathBuf;

    use minicbor::decode::{self, Decoder};
    use minicbor::encode::{self, Encoder, Write};

    pub(crate) fn encode<C, W: Write>(
        paths: &[PathBuf],
        e: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.array(paths.len() as u64)?;
        paths.iter().try_for_each(|path| super::path::encode(path, e, ctx))
    }

    pub(crate) fn decode<C>(d: &mut Decoder<'_>, ctx: &mut C) -> Result<Vec<PathBuf>, decode::Error> {
        let count = d.array()?.ok_or_else(|| decode::Error::message("a list of unknown length"))?;
        (0..count).map(|_| super::path::decode(d, ctx)).collect()
    }
}

/// CBOR of arguments, which need not be text.
pub(crate) mod words {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    use minicbor::decode::{self, Decoder};
    use minicbor::encode::{self, Encoder, Write};

    pub(crate) fn encode<C, W: Write>(
        words: &[OsString],
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.array(words.len() as u64)?;
        for word in words {
            e.bytes(word.as_bytes())?;
        }
        Ok(())
    }

    pub(crate) fn decode<C>(d: &mut Decoder<'_>, ctx: &mut C) -> Result<Vec<OsString>, decode::Error> {
        Ok(super::paths::decode(d, ctx)?.into_iter().map(PathBuf::into_os_string).collect())
    }
}
