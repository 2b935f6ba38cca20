//! The job as it travels: what the user asks, a number the client drew, and the user's signature.
//!
//! The id of a job is a hash of all of this but the 64 bytes of the signature and the pass:
//! - with the nonce, so that a retry is the same job and two equal submissions are two;
//! - with the signer's key, so that nobody can put their own name on somebody else's job and keep its id;
//! - without the signature, because one message has many valid signatures (a signer may add chance to them): a client
//!   that signs again for a retry must not submit a second job;
//! - without the pass, which is made anew from time to time while the job stays the same.
//!
//! What is signed names a grid and a date ([`Origin`]), so that nobody has it run elsewhere, or long after. Jobs of
//! earlier versions name neither; they can be read, and keep their ids.
//!
//! There is one encoding of each envelope, and any other is refused. An envelope with a field that this version does
//! not know is refused too: dropping the field would change the id, and running the job without it would be a lie.

mod origin;
mod whose;

use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{CborLen, Decode, Encode};

use crate::id::JobId;
use crate::job::{Job, JobError};
use crate::time::Time;

pub use origin::{Authorship, Origin};
use whose::Whose;
pub use whose::{PASS_BYTES_MAX, Pass};

/// Bytes of an encoded envelope, at most; checked before anything is decoded.
pub const MAX_ENVELOPE_BYTES: usize = 512 << 10;

/// Tells this hash from every other use of BLAKE3.
const DIGEST_CONTEXT: &str = "shoal 2026-11-15 job envelope v1";

/// Sixteen bytes drawn by the client: what tells two equal jobs apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Nonce(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct PublicKey(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

/// An Ed25519 signature; whether it is valid is for those to say who know about keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Signature(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 64]);

/// Who signed, and the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Seal {
    /// The key that checks the signature.
    #[n(0)]
    pub signer: PublicKey,
    /// The signature of the envelope's [digest](Envelope::digest).
    #[n(1)]
    pub signature: Signature,
}

/// A job that makes sense, ready to travel.
///
/// Very many may wait: what all jobs of a user have in common is in memory once. What it says is `Said`.
#[derive(Clone)]
pub struct Envelope {
    job: Job,
    nonce: Nonce,
    /// Who signed it, for which grid, and what shows who that is.
    whose: Option<Arc<Whose>>,
    signature: Option<Box<Signature>>,
    /// When it was made, if it is for a grid.
    made: Time,
    id: KeptId,
}

/// What an envelope says, in the order in which it is written.
#[derive(PartialEq, Eq, Hash, Encode, CborLen)]
#[cbor(map)]
struct Said<'a> {
    #[n(0)]
    job: &'a Job,
    #[n(1)]
    nonce: Nonce,
    #[n(2)]
    seal: Option<Seal>,
    #[n(3)]
    pass: Option<&'a Pass>,
    #[n(4)]
    origin: Option<Origin>,
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Said { job, nonce, seal, pass, origin } = self.said();
        let mut shown = f.debug_struct("Envelope");
        shown.field("job", job).field("nonce", &nonce).field("seal", &seal).field("pass", &pass);
        shown.field("origin", &origin).field("id", &self.id).finish()
    }
}

impl PartialEq for Envelope {
    fn eq(&self, other: &Envelope) -> bool {
        self.said() == other.said()
    }
}

impl Eq for Envelope {}

impl Hash for Envelope {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.said().hash(state);
    }
}

impl<C> Encode<C> for Envelope {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), encode::Error<W::Error>> {
        self.said().encode(e, ctx)
    }
}

impl<C> CborLen<C> for Envelope {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.said().cbor_len(ctx)
    }
}

/// The id of an envelope, from when somebody asks for it: every record and every word about a job does. No part of what it
/// says.
#[derive(Clone, Default)]
struct KeptId(OnceLock<JobId>);

impl fmt::Debug for KeptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

/// What is wrong with an envelope.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// More than [`MAX_ENVELOPE_BYTES`].
    #[error("an envelope of {0} bytes, at most {MAX_ENVELOPE_BYTES}: bring large parts along as files")]
    TooLong(usize),
    /// Not an envelope.
    #[error("not a job envelope: {}", cause(.0))]
    Decode(#[source] decode::Error),
    /// A job that makes no sense.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A field of a later version, or another encoding than the one there is.
    #[error(
        "a job envelope with a field that this version does not know, or in another than its one encoding"
    )]
    Encoding,
    /// More bytes after its end.
    #[error("{0} more bytes after the end of the envelope")]
    Trailing(usize),
}

impl Envelope {
    /// An envelope without a signature.
    pub fn new(job: Job, nonce: Nonce) -> Result<Envelope, EnvelopeError> {
        job.check()?;
        let envelope = Envelope::of(job, nonce, None, None, None);
        envelope.check_length()?;
        Ok(envelope)
    }

    /// The same for one grid, and from one day on; to be said before it is signed.
    pub fn made_for(self, origin: Origin) -> Envelope {
        let pass = self.pass().cloned();
        Envelope::of(self.job, self.nonce, None, pass, Some(origin))
    }

    /// The same signed by the owner of a key: `sign` gets the [digest](Envelope::digest) of what is signed.
    pub fn sealed(self, signer: PublicKey, sign: impl FnOnce(&[u8; 32]) -> Signature) -> Envelope {
        let (origin, pass) = (self.origin(), self.pass().cloned());
        let signature = sign(&digest(&self.job, self.nonce, Some(signer), origin));
        Envelope::of(self.job, self.nonce, Some(Seal { signer, signature }), pass, origin)
    }

    /// The same with what shows who the signer is, in place of what there was.
    pub fn with_pass(self, pass: Pass) -> Envelope {
        let (seal, origin) = (self.seal(), self.origin());
        Envelope::of(self.job, self.nonce, seal, Some(pass), origin)
    }

    fn of(
        mut job: Job,
        nonce: Nonce,
        seal: Option<Seal>,
        pass: Option<Pass>,
        origin: Option<Origin>,
    ) -> Envelope {
        let (signer, grid) = (seal.map(|seal| seal.signer), origin.map(|origin| origin.grid));
        let whose = Whose::shared(signer, grid, pass, &mut job);
        let signature = seal.map(|seal| Box::new(seal.signature));
        let made = origin.map_or(Time::ZERO, |origin| origin.made);
        Envelope { job, nonce, whose, signature, made, id: KeptId::default() }
    }

    fn said(&self) -> Said<'_> {
        let (seal, pass, origin) = (self.seal(), self.pass(), self.origin());
        Said { job: &self.job, nonce: self.nonce, seal, pass, origin }
    }

    /// Reads an envelope and nothing else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Envelope, EnvelopeError> {
        if bytes.len() > MAX_ENVELOPE_BYTES {
            return Err(EnvelopeError::TooLong(bytes.len()));
        }
        let mut decoder = Decoder::new(bytes);
        let envelope = Envelope::read(&mut decoder, &mut ())?;
        match bytes.len() - decoder.position() {
            0 => Ok(envelope),
            more => Err(EnvelopeError::Trailing(more)),
        }
    }

    /// The one encoding of this envelope.
    pub fn to_bytes(&self) -> Vec<u8> {
        encoded(self)
    }

    /// What the user asks.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// What the client drew.
    pub fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// Who signed it, if anybody did.
    pub fn seal(&self) -> Option<Seal> {
        Some(Seal { signer: self.signer()?, signature: **self.signature.as_ref()? })
    }

    fn signer(&self) -> Option<PublicKey> {
        self.whose.as_ref()?.signer
    }

    /// What shows who the signer is, if anything does.
    pub fn pass(&self) -> Option<&Pass> {
        self.whose.as_ref()?.pass.as_ref()
    }

    /// For which grid it was signed, and when; unknown of jobs of earlier versions.
    pub fn origin(&self) -> Option<Origin> {
        Some(Origin { grid: self.whose.as_ref()?.grid?, made: self.made })
    }

    /// What shows whose it is to who knows its id, if it is somebody's and for a grid.
    pub fn authorship(&self) -> Option<Authorship> {
        Some(Authorship::new(&self.job, self.nonce, self.signer()?, self.origin()?))
    }

    /// What is signed, and what the id is the beginning of: everything but the signature and the pass.
    pub fn digest(&self) -> [u8; 32] {
        digest(&self.job, self.nonce, self.signer(), self.origin())
    }

    /// The id of the job: the first 16 bytes of the digest.
    pub fn id(&self) -> JobId {
        *self.id.0.get_or_init(|| first_half(self.digest()))
    }

    fn read<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Envelope, EnvelopeError> {
        #[derive(Decode)]
        #[cbor(map)]
        struct Wire {
            #[n(0)]
            job: Job,
            #[n(1)]
            nonce: Nonce,
            #[n(2)]
            seal: Option<Seal>,
            #[n(3)]
            pass: Option<Pass>,
            #[n(4)]
            origin: Option<Origin>,
        }
        let start = d.position();
        let Wire { job, nonce, seal, pass, origin } = Wire::decode(d, ctx).map_err(EnvelopeError::Decode)?;
        job.check()?;
        let envelope = Envelope::of(job, nonce, seal, pass, origin);
        envelope.check_length()?;
        let mut rest = Rest(d.input().get(start..d.position()).unwrap_or_default());
        match minicbor::encode(&envelope, &mut rest) {
            Ok(()) if rest.0.is_empty() => Ok(envelope),
            _ => Err(EnvelopeError::Encoding),
        }
    }

    /// Counts a seal, a pass and an origin whether they are there or not, so that none can make an envelope too long.
    fn check_length(&self) -> Result<(), EnvelopeError> {
        let said = self.said();
        let seal_to_come = if said.seal.is_some() { 0 } else { SEAL_BYTES };
        let pass_to_come = if said.pass.is_some() { 0 } else { PASS_TO_COME };
        let origin_to_come = if said.origin.is_some() { 0 } else { ORIGIN_BYTES };
        match minicbor::len(&said) + seal_to_come + pass_to_come + origin_to_come {
            length if length > MAX_ENVELOPE_BYTES => Err(EnvelopeError::TooLong(length)),
            _ => Ok(()),
        }
    }
}

/// Refuses what makes no sense and what is not in its one encoding.
impl<'b, C> Decode<'b, C> for Envelope {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Envelope, decode::Error> {
        let start = d.position();
        Envelope::read(d, ctx).map_err(|error| match error {
            EnvelopeError::Decode(error) => error,
            error => decode::Error::custom(error).at(start),
        })
    }
}

/// The bytes that a seal adds: its field number, two lengths and its contents.
const SEAL_BYTES: usize = 1 + 1 + (2 + 32) + (2 + 64);
/// The bytes that a pass adds at most: its field number, its length and its contents.
const PASS_TO_COME: usize = 1 + 3 + PASS_BYTES_MAX;

/// The bytes that an origin adds at most: its field number, its length, a key and a time.
const ORIGIN_BYTES: usize = 1 + 1 + (2 + 32) + 9;

/// A decoder's error with what our own types had to say, which it keeps to itself.
fn cause(error: &decode::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn first_half(digest: [u8; 32]) -> JobId {
    let [id @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = digest;
    JobId(id)
}

fn digest(job: &Job, nonce: Nonce, signer: Option<PublicKey>, origin: Option<Origin>) -> [u8; 32] {
    if let Some(origin) = origin {
        return origin::of_job(job, nonce, signer, origin);
    }
    let mut hasher = blake3::Hasher::new_derive_key(DIGEST_CONTEXT);
    hasher.update(&encoded((job, nonce, signer)));
    *hasher.finalize().as_bytes()
}

/// What is to be written from here on; takes nothing else.
struct Rest<'a>(&'a [u8]);

/// Something else was written.
#[derive(Debug)]
struct Otherwise;

impl Write for Rest<'_> {
    type Error = Otherwise;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Otherwise> {
        self.0 = self.0.strip_prefix(bytes).ok_or(Otherwise)?;
        Ok(())
    }
}

/// Room for what most jobs say: to make a little more of it again and again would take longer than to write it.
const ROOM: usize = 512;

fn encoded(value: impl Encode<()>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ROOM);
    minicbor::encode(value, &mut bytes).expect("writing to memory does not fail");
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::honours::Field;
    use crate::samples::{envelope, set};

    const NONCE: Nonce = Nonce([7; 16]);

    fn plain() -> Envelope {
        Envelope::new(Job::command(["true"]), NONCE).unwrap()
    }

    #[test]
    fn encoding_and_id_stay_what_they_were() {
        // If this fails, stored jobs change their ids: a new field must be an `Option`, not a change of these.
        let bytes = plain().to_bytes();
        assert_eq!(hex(&bytes), PLAIN_BYTES);
        assert_eq!(plain().id().to_string(), PLAIN_ID);
    }

    #[test]
    fn each_field_and_the_nonce_and_the_signer_change_the_id() {
        let mut ids = BTreeMap::from([(plain().id(), "plain".to_owned())]);
        let mut differs = |what: String, envelope: Envelope| {
            if let Some(other) = ids.insert(envelope.id(), what.clone()) {
                panic!("{what} has the id of {other}");
            }
        };
        for &field in Field::ALL {
            // A mode is all there is to say of it: it has one value.
            let picks = if matches!(field, Field::Rerun | Field::AtMostOnce) { 1 } else { 2 };
            for pick in 0..picks {
                let mut job = Job::command(["true"]);
                set(&mut job, field, pick);
                differs(format!("{field} {pick}"), Envelope::new(job, NONCE).unwrap());
            }
        }
        differs("argument".into(), Envelope::new(Job::command(["true", ""]), NONCE).unwrap());
        differs("script".into(), Envelope::new(Job::script("true"), NONCE).unwrap());
        differs("nonce".into(), Envelope::new(Job::command(["true"]), Nonce([8; 16])).unwrap());
        let sealed = |key| plain().sealed(PublicKey([key; 32]), |_| Signature([0; 64]));
        differs("signer".into(), sealed(1));
        differs("other signer".into(), sealed(2));
    }

    #[test]
    fn id_that_was_asked_for_too_early_is_not_kept() {
        let envelope = plain();
        let before = envelope.id();
        let origin = Origin { grid: PublicKey([3; 32]), made: Time::from_secs(1) };
        let made = envelope.made_for(origin);
        let unsigned = made.id();
        let sealed = made.sealed(PublicKey([1; 32]), |_| Signature([0; 64]));
        let ids = [before, unsigned, sealed.id()];
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
        assert_eq!(Envelope::from_bytes(&sealed.to_bytes()).unwrap().id(), ids[2]);
        assert_eq!(sealed, Envelope::from_bytes(&sealed.to_bytes()).unwrap(), "whether asked for or not");
    }

    #[test]
    fn signing_again_leaves_the_id() {
        let key = PublicKey([1; 32]);
        let once = plain().sealed(key, |digest| Signature([digest[0]; 64]));
        let again = plain().sealed(key, |digest| Signature([!digest[0]; 64]));
        assert_ne!(once, again);
        assert_eq!(once.id(), again.id());
    }

    #[test]
    fn another_pass_leaves_the_id_and_one_too_long_is_none() {
        let pass = |byte: u8| Pass::new(vec![byte; 9]).unwrap();
        let [one, other] = [1, 2].map(|byte| plain().with_pass(pass(byte)));
        assert_ne!(one, other);
        assert_eq!((one.id(), one.digest()), (other.id(), plain().digest()));
        assert_eq!(Pass::new(vec![0; PASS_BYTES_MAX + 1]), None);
        let mut bytes = encoded(vec![0_u8; 3]);
        assert!(minicbor::decode::<Pass>(&bytes).is_err(), "a list is no pass");
        bytes = encoded(minicbor::bytes::ByteVec::from(vec![0; PASS_BYTES_MAX + 1]));
        assert!(minicbor::decode::<Pass>(&bytes).is_err());
    }

    #[test]
    fn envelope_takes_little_room() {
        assert!(size_of::<Job>() <= 192, "{}", size_of::<Job>());
        assert!(size_of::<Envelope>() <= 256, "{}", size_of::<Envelope>());
    }

    #[test]
    fn what_is_signed_begins_with_the_id() {
        let mut signed = [0; 32];
        let envelope = plain().sealed(PublicKey([1; 32]), |digest| {
            signed = *digest;
            Signature([0; 64])
        });
        assert_eq!(signed, envelope.digest());
        assert_eq!(signed[..16], envelope.id().0);
    }

    #[test]
    fn a_field_of_a_later_version_is_refused_rather_than_dropped() {
        // A map of three, the third with the number 99: valid for a version that knows it.
        let mut bytes = plain().to_bytes();
        assert_eq!(bytes[0], 0xa2);
        bytes[0] = 0xa3;
        bytes.extend([0x18, 99, 0x01]);
        assert!(matches!(Envelope::from_bytes(&bytes), Err(EnvelopeError::Encoding)));
    }

    #[test]
    fn envelopes_too_long_or_with_more_behind_are_refused() {
        let mut bytes = plain().to_bytes();
        bytes.push(0);
        assert!(matches!(Envelope::from_bytes(&bytes), Err(EnvelopeError::Trailing(1))));
        let bytes = vec![0; MAX_ENVELOPE_BYTES + 1];
        assert!(matches!(Envelope::from_bytes(&bytes), Err(EnvelopeError::TooLong(_))));
        let mut job = Job::script("a".repeat(crate::job::MAX_SCRIPT_BYTES));
        let path = |n: usize| format!("{n:04}{}", "a".repeat(500));
        let inputs = (0..1_000).map(|n| crate::job::Staged::parse_input(&path(n)).unwrap()).collect();
        job.files = Some(Box::new(crate::job::Files { inputs, outputs: vec![] }));
        assert!(matches!(Envelope::new(job, NONCE), Err(EnvelopeError::TooLong(_))));
    }

    #[test]
    fn a_refused_envelope_says_why() {
        let wire = |job: Job| encoded(Envelope::of(job, NONCE, None, None, None));
        let zero = Envelope::from_bytes(&wire(Job::script(""))).unwrap_err();
        assert_eq!(zero.to_string(), "`script` is empty: say what to run");
        let text = "a name with spaces";
        let named = Job { user: Some("a-name-with-dashes".parse().unwrap()), ..Job::command(["true"]) };
        let mut bytes = wire(named);
        let at = bytes.windows(text.len()).position(|window| window == b"a-name-with-dashes").unwrap();
        bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        let error = Envelope::from_bytes(&bytes).unwrap_err().to_string();
        assert!(error.contains("has ' ' at column 2: a name consists of"), "{error}");
    }

    proptest! {
        #[test]
        fn envelopes_read_back_what_they_write(envelope in envelope()) {
            let bytes = envelope.to_bytes();
            prop_assert_eq!(minicbor::len(&envelope), bytes.len());
            prop_assert_eq!(&bytes, &envelope.clone().to_bytes());
            let read = Envelope::from_bytes(&bytes).unwrap();
            prop_assert_eq!(read.id(), envelope.id());
            prop_assert_eq!(read, envelope);
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_read_back_the_same(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(envelope) = Envelope::from_bytes(&bytes) {
                prop_assert_eq!(envelope.to_bytes(), bytes);
            }
        }

        #[test]
        fn mutated_envelopes_are_refused_or_are_other_envelopes(
            envelope in envelope(),
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
        ) {
            let original = envelope.to_bytes();
            let mut bytes = original.clone();
            for (index, byte, edit) in edits {
                let at = index.index(bytes.len());
                match edit {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            if let Ok(read) = Envelope::from_bytes(&bytes) {
                prop_assert_eq!(read.job().check(), Ok(()));
                prop_assert_eq!(&read.to_bytes(), &bytes);
                prop_assert_eq!(read == envelope, bytes == original);
            }
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    const PLAIN_BYTES: &str =
        "a200a300820081816474727565010102841903e8000000015007070707070707070707070707070707";
    const PLAIN_ID: &str = "2793b214ecf2bdc3611fb1f42d3b8360";
}
