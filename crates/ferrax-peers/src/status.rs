//! Reports of a process to another one about its calls, as bytes.
//!
//! ```
//! use ferrax_peers::status::Status;
//! let status = Status::Waits { index: 3, digest: 7, wait: 1, round: 0 };
//! assert_eq!(Status::read(&status.bytes()), Some(status));
//! ```
//!
//! INVARIANT: each is short, so that MPI sends it without an answer of the receiver: long texts and lists of digests are cut ([`texts`]).

/// The most bytes of a text in one message.
const PIECE: usize = 2 << 10;

/// A process that waits, and the number of its wait.
pub type Waiter = (usize, u64);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// The sender waits for the receiver in a call. `wait` is the number of the wait there, `round` how often it has asked before.
    Waits {
        index: u64,
        digest: u64,
        wait: u64,
        round: u64,
    },
    /// The last call in which the receiver waits that is the same for the sender.
    Same(u64),
    /// All devices of the sender have finished a call; the number of messages that it has sent in all.
    Finished {
        index: u64,
        sent: u64,
    },
    /// Processes that wait, each for the next one, and the last one for the receiver; the first asks whether it is waited for.
    Probe {
        path: Vec<Waiter>,
        round: u64,
    },
    /// Processes that wait for each other, the receiver first.
    Circle(Vec<Waiter>),
    /// Asks for a sign of life.
    Ping,
    Pong,
    /// Where the sender's program is.
    Place(String),
    /// The sender makes no more calls than these; the number of messages that it has sent in all.
    Ended {
        calls: u64,
        sent: u64,
    },
    /// The sender does not continue a call.
    GivenUp {
        index: u64,
        why: String,
    },
    /// Digests of calls that the sender has made, by index.
    Digests(Vec<(u64, u64)>),
    /// A call that differs. The digests of all calls up to it that the sender remembers were sent before.
    Differs(u64),
    /// A part of the text of the sender's program in a call.
    Text {
        index: u64,
        part: String,
        last: bool,
    },
}

/// The text of a call, in messages.
pub fn texts(index: u64, text: &str) -> Vec<Status> {
    let (mut rest, mut all) = (text, vec![]);
    loop {
        let (part, more) = rest.split_at(cut(rest));
        all.push(Status::Text { index, part: part.into(), last: more.is_empty() });
        if more.is_empty() {
            return all;
        }
        rest = more;
    }
}
/// Where a text is cut: at the end of a piece, and of a character.
fn cut(text: &str) -> usize {
    (0..=PIECE.min(text.len())).rev().find(|k| text.is_char_boundary(*k)).unwrap_or_default()
}

struct Reader<'a>(&'a [u8]);
impl Reader<'_> {
    fn word(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }
    fn text(&mut self) -> Option<String> {
        let n = usize::try_from(self.word()?).ok()?;
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        String::from_utf8(head.to_vec()).ok()
    }
    fn pairs(&mut self) -> Option<Vec<(u64, u64)>> {
        (0..self.word()?).map(|_| Some((self.word()?, self.word()?))).collect()
    }
    fn path(&mut self) -> Option<Vec<Waiter>> {
        self.pairs()?.into_iter().map(|(p, wait)| Some((usize::try_from(p).ok()?, wait))).collect()
    }
}
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}
fn put_pairs(out: &mut Vec<u8>, pairs: impl ExactSizeIterator<Item = (u64, u64)>) {
    out.extend((pairs.len() as u64).to_le_bytes());
    pairs.for_each(|(a, b)| out.extend([a.to_le_bytes(), b.to_le_bytes()].concat()));
}
fn put_path(out: &mut Vec<u8>, path: &[Waiter]) {
    put_pairs(out, path.iter().map(|(p, wait)| (*p as u64, *wait)));
}

impl Status {
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![];
        let mut head = |kind: u8, words: &[u64]| {
            out.push(kind);
            words.iter().for_each(|w| out.extend(w.to_le_bytes()));
        };
        match self {
            Status::Waits { index, digest, wait, round } => head(0, &[*index, *digest, *wait, *round]),
            Status::Same(index) => head(1, &[*index]),
            Status::Finished { index, sent } => head(2, &[*index, *sent]),
            Status::Probe { path, round } => {
                head(3, &[*round]);
                put_path(&mut out, path);
            }
            Status::Circle(path) => {
                head(4, &[]);
                put_path(&mut out, path);
            }
            Status::Ping => head(5, &[]),
            Status::Pong => head(6, &[]),
            Status::Place(place) => {
                head(7, &[]);
                put_text(&mut out, &place[..cut(place)]);
            }
            Status::Ended { calls, sent } => head(8, &[*calls, *sent]),
            Status::GivenUp { index, why } => {
                head(9, &[*index]);
                put_text(&mut out, &why[..cut(why)]);
            }
            Status::Digests(all) => {
                head(10, &[]);
                put_pairs(&mut out, all.iter().copied());
            }
            Status::Differs(index) => head(12, &[*index]),
            Status::Text { index, part, last } => {
                head(11, &[*index, u64::from(*last)]);
                put_text(&mut out, part);
            }
        }
        out
    }
    /// `None` if the bytes encode none of these.
    pub fn read(bytes: &[u8]) -> Option<Status> {
        let (kind, rest) = bytes.split_first()?;
        let mut r = Reader(rest);
        Some(match kind {
            0 => Status::Waits { index: r.word()?, digest: r.word()?, wait: r.word()?, round: r.word()? },
            1 => Status::Same(r.word()?),
            2 => Status::Finished { index: r.word()?, sent: r.word()? },
            3 => {
                let round = r.word()?;
                Status::Probe { path: r.path()?, round }
            }
            4 => Status::Circle(r.path()?),
            5 => Status::Ping,
            6 => Status::Pong,
            7 => Status::Place(r.text()?),
            8 => Status::Ended { calls: r.word()?, sent: r.word()? },
            9 => Status::GivenUp { index: r.word()?, why: r.text()? },
            10 => Status::Digests(r.pairs()?),
            12 => Status::Differs(r.word()?),
            11 => {
                let (index, last) = (r.word()?, r.word()? != 0);
                Status::Text { index, part: r.text()?, last }
            }
            _ => return None,
        })
    }
}
