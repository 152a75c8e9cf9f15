//! What stands behind an `ir::Array`: buffers on devices.
//!
//! INVARIANT: an array's elements never change. Donation empties it: the buffers go, and every later use says so.
use crate::device::Device;
use crate::runtime;
use ferrax_ir::error::{Error, ErrorKind, Res};
use ferrax_ir::lower::physical;
use ferrax_ir::value::{Array, Payload};
use ferrax_ir::{Aval, Dtype, Lit};
use ferrax_kernel::error::room;
use ferrax_kernel::{Buffer, DType, Scalar};
use qcell::{TCell, TCellOwner};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::{LazyLock, RwLock, RwLockReadGuard};

/// One device's part.
#[derive(Clone)]
pub struct Shard {
    pub device: &'static Device,
    pub buffer: Buffer,
}

/// One shard: the whole array. Several: equal parts along axis 0, in order (what pmap returns).
pub type Shards = Vec<Shard>;

pub struct Data {
    place: TCell<Storage, Storage>,
    /// Whether a user placed it; computations bring the others to their device.
    pub committed: bool,
    /// Written down by a program, not computed: known whatever has run by now. In which of the [`ages`] that was; 0 for what was computed.
    pub written: u32,
    /// The first part's: read on every call, without a lock.
    pub device: &'static Device,
}

/// Where the elements are.
enum Storage {
    Whole(Buffer),
    Parts(Shards),
    /// The array was deleted or donated.
    Gone,
}

/// One lock for the places of all arrays. Deleting is rare and brief; reading is not.
/// PERF: benches/dispatch, the 40-leaf row: a call takes it once, and reads its arguments' buffers in place.
static PLACES: LazyLock<RwLock<TCellOwner<Storage>>> = LazyLock::new(|| RwLock::new(TCellOwner::new()));

/// While one is held, no array is deleted; whoever deletes waits. Its holder deletes nothing, and takes no second one.
pub struct Reading(RwLockReadGuard<'static, TCellOwner<Storage>>);
impl Reading {
    #[inline]
    pub fn begin() -> Reading {
        Reading(PLACES.read().unwrap_or_else(|e| e.into_inner()))
    }
    /// The buffer, where the array stands whole on this device.
    #[inline]
    pub fn whole_on<'a>(&'a self, d: &'a Data, device: &Device) -> Option<&'a Buffer> {
        match self.place(d) {
            Storage::Whole(b) if d.device == device => Some(b),
            _ => None,
        }
    }
    fn place<'a>(&'a self, d: &'a Data) -> &'a Storage {
        self.0.ro(&d.place)
    }
}

impl Data {
    fn new(place: Storage, device: &'static Device, committed: bool) -> Data {
        Data { place: TCell::new(place), committed, written: 0, device }
    }
    /// Empty where the array was deleted.
    pub fn shards(&self) -> Shards {
        match Reading::begin().place(self) {
            Storage::Whole(b) => vec![Shard { device: self.device, buffer: b.clone() }],
            Storage::Parts(p) => p.clone(),
            Storage::Gone => vec![],
        }
    }
    pub fn is_deleted(&self) -> bool {
        matches!(Reading::begin().place(self), Storage::Gone)
    }
    /// Lets go of the buffers.
    pub fn delete(&self) {
        let mut owner = PLACES.write().unwrap_or_else(|e| e.into_inner());
        let old = std::mem::replace(owner.rw(&self.place), Storage::Gone);
        drop(owner);
        drop(old); // without the lock: it may be the last holder
    }
    pub fn is_ready(&self) -> bool {
        match Reading::begin().place(self) {
            Storage::Whole(b) => b.is_done(),
            Storage::Parts(p) => p.iter().all(|s| s.buffer.is_done()),
            Storage::Gone => true,
        }
    }
}

impl Payload for Data {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn item(&self, aval: &Aval) -> Res<Lit> {
        if aval.shape.size() != 1 {
            return Err(Error::type_error(
                "Only scalar arrays can be converted to Python scalars; got array.ndim={}"
                    .replace("{}", &aval.rank().to_string()),
            ));
        }
        let bytes = read(self, aval)?;
        Ok(match aval.dtype {
            Dtype::C64 => Lit::c64(
                Scalar::from_bytes(DType::F32, &bytes).to_f64() as f32,
                Scalar::from_bytes(DType::F32, &bytes[4..]).to_f64() as f32,
                aval.weak,
            ),
            d => match d.num() {
                Some(d) => Lit::new(Scalar::from_bytes(d, &bytes), aval.weak),
                None => return Err(Error::type_error(format!("a value of dtype {d} has no literal form"))),
            },
        })
    }
}

/// An array of one buffer.
pub fn array(aval: Aval, device: &'static Device, buffer: Buffer, committed: bool) -> Array {
    Array::new(aval, Data::new(Storage::Whole(buffer), device, committed))
}
/// An array of equal parts along axis 0, at least one.
pub fn sharded(aval: Aval, mut shards: Shards, committed: bool) -> Array {
    let device = shards[0].device;
    match shards.pop() {
        Some(one) if shards.is_empty() => array(aval, device, one.buffer, committed),
        last => {
            shards.extend(last);
            Array::new(aval, Data::new(Storage::Parts(shards), device, committed))
        }
    }
}
/// What stands behind an array.
pub fn data(a: &Array) -> Res<&Data> {
    a.data::<Data>().ok_or_else(|| Error::type_error("an array of another runtime"))
}
fn deleted(aval: &Aval) -> Error {
    Error::new(ErrorKind::Runtime, format!("Array has been deleted with shape={}.", aval.long()))
}
/// Its shards, or the error that it was deleted.
pub fn shards(a: &Array) -> Res<Shards> {
    let s = data(a)?.shards();
    if s.is_empty() { Err(deleted(a.aval())) } else { Ok(s) }
}
/// Its only shard; an array of several parts is first brought together on its first device.
pub fn single(a: &Array) -> Res<Shard> {
    let d = data(a)?;
    let device = d.device;
    match Reading::begin().place(d) {
        Storage::Whole(b) => return Ok(Shard { device, buffer: b.clone() }),
        Storage::Parts(_) => (),
        Storage::Gone => return Err(deleted(a.aval())),
    }
    let bytes = read(d, a.aval())?;
    Ok(Shard { device, buffer: device.backend.upload(&bytes)? })
}
/// The bytes of an array on the host: row major, in physical form. Waits.
pub fn bytes(a: &Array) -> Res<Vec<u8>> {
    read(data(a)?, a.aval())
}
fn read(d: &Data, aval: &Aval) -> Res<Vec<u8>> {
    let shards = d.shards();
    runtime::wait(shards.iter().map(|s| &s.buffer))?;
    let download = |s: &Shard| runtime::read(s.device, &s.buffer);
    match &shards[..] {
        [] => Err(deleted(aval)),
        [one] => download(one),
        all => {
            let mut out = room(all.iter().map(|s| s.buffer.bytes()).sum())?;
            for s in all {
                out.extend(download(s)?);
            }
            Ok(out)
        }
    }
}

/// An array with these bytes (row major, physical form) on a device.
pub fn from_bytes(aval: Aval, bytes: &[u8], device: &'static Device, committed: bool) -> Res<Array> {
    let p = physical(&aval);
    let want = p.shape.checked(p.dtype.size())?;
    if want != bytes.len() {
        return Err(Error::value(format!("{} needs {want} bytes, not {}", aval.long(), bytes.len())));
    }
    check_dtype(&aval, device)?;
    let place = Storage::Whole(device.backend.upload(bytes)?);
    Ok(Array::new(aval, Data { written: ages::now(), ..Data::new(place, device, committed) }))
}
/// Tells what was written down before a moment from what was after it.
pub mod ages {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NOW: AtomicU32 = AtomicU32::new(1);
    pub fn now() -> u32 {
        NOW.load(Ordering::Relaxed)
    }
    /// Begins a new age, and gives its number.
    pub fn begin() -> u32 {
        NOW.fetch_add(1, Ordering::Relaxed) + 1
    }
}
/// An error where the device does not have the dtype.
pub fn check_dtype(aval: &Aval, device: &Device) -> Res<()> {
    let d = physical(aval).dtype;
    if device.backend.supports(d) {
        return Ok(());
    }
    Err(Error::type_error(format!(
        "{device} ({}) has no {}\nhelp: convert to a narrower dtype, or keep the array on cpu",
        device.backend.description(),
        d.long()
    )))
}
/// The same elements on another device.
pub fn put(a: &Array, device: &'static Device, committed: bool) -> Res<Array> {
    if let [one] = &shards(a)?[..]
        && one.device == device
    {
        return Ok(array(a.aval().clone(), device, one.buffer.clone(), committed));
    }
    from_bytes(a.aval().clone(), &bytes(a)?, device, committed)
}
/// Another array of the same elements in the same memory: neither's deletion touches the other.
pub fn again(a: &Array) -> Res<Array> {
    Ok(sharded(a.aval().clone(), shards(a)?, data(a)?.committed))
}
/// A rank-0 array of a literal.
pub fn from_lit(l: &Lit, device: &'static Device) -> Res<Array> {
    let aval = l.aval();
    let bytes: SmallVec<[u8; 16]> = match l.scalar() {
        Some(s) => s.bytes()[..s.dtype.size()].into(),
        None => {
            let (re, im) = l.parts();
            let d = physical(&aval).dtype;
            [re, im].iter().flat_map(|x| Scalar::from_f64(d, *x).bytes()[..d.size()].to_vec()).collect()
        }
    };
    from_bytes(aval, &bytes, device, false)
}

/// Waits until the buffer is ready; an error if it is poisoned.
pub fn wait(b: &Buffer) -> Res<()> {
    match b.try_memory() {
        Some(m) => Ok(m.map(|_| ())?),
        None => runtime::wait(std::iter::once(b)),
    }
}
/// Waits until the buffer is ready and its device has done the work; the error of what went wrong.
pub fn finished(b: &Buffer) -> Res<()> {
    wait(b)?;
    runtime::finished(b)
}
/// Takes the lock of all places, to be held over a fork.
pub fn freeze() -> impl Any {
    PLACES.write().unwrap_or_else(|e| e.into_inner())
}
