//! The data of an `ir::Array`: buffers on devices.
//!
//! INVARIANT: an array's elements never change. Donation empties it: the buffers are gone, and
//! every later use is an error that says so.
use crate::device::Device;
use crate::parts::{self, DeviceMesh, Extents, Layout};
use crate::runtime;
use ferrax_ir::cut::TypedCut;
use ferrax_ir::error::{Error, ErrorKind, Res};
use ferrax_ir::layout::{Grid, Spec};
use ferrax_ir::lower::physical;
use ferrax_ir::value::{Array, Payload};
use ferrax_ir::{Aval, Dtype, Lit};
use ferrax_kernel::{Buffer, DType, Scalar};
use qcell::{TCell, TCellOwner};
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::any::Any;
use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, RwLock, RwLockReadGuard};

/// One device's part.
#[derive(Clone)]
pub struct Shard {
    pub device: &'static Device,
    pub buffer: Buffer,
}

/// One shard: the whole array. Several: the parts of a layout, in the order of its devices.
pub type Shards = Vec<Shard>;

pub struct Data {
    place: TCell<Storage, Storage>,
    /// Whether a user placed it; computations bring the others to their device.
    pub committed: bool,
    /// Set for a value that a program wrote down rather than computed, which is known before
    /// anything runs: the number of the [`ages`] when that was; 0 for a computed value.
    pub written: u32,
    /// The first part's: read on every call, without a lock.
    pub device: &'static Device,
    /// Of an array that was laid out over a mesh of devices, if only of one. Such an array is committed.
    pub layout: Option<Arc<Layout>>,
    /// Of the elements, once it was asked for; 0 before.
    fingerprint: AtomicU64,
}

/// The memory of the elements.
enum Storage {
    Whole(Buffer),
    /// One for each device of the layout that belongs to this process.
    Parts(Vec<Buffer>),
    /// The array was deleted or donated.
    Gone,
}

/// One lock for the places of all arrays. Deleting is rare and brief; reading is not.
/// PERF: benches/dispatch, the 40-leaf row: a call takes it once, and reads its arguments' buffers in place.
static PLACES: LazyLock<RwLock<TCellOwner<Storage>>> = LazyLock::new(|| RwLock::new(TCellOwner::new()));

/// While one is held, no array is deleted; a deletion waits. Its holder deletes nothing, and takes no second one.
pub struct Reading(RwLockReadGuard<'static, TCellOwner<Storage>>);
impl Reading {
    #[inline]
    pub fn begin() -> Reading {
        Reading(PLACES.read().unwrap_or_else(|e| e.into_inner()))
    }
    /// The buffer, if the array is whole on this device.
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
        Data { place: TCell::new(place), committed, written: 0, device, layout: None, fingerprint: AtomicU64::new(0) }
    }
    /// Empty where the array was deleted.
    pub fn shards(&self) -> Shards {
        match Reading::begin().place(self) {
            Storage::Whole(b) => vec![Shard { device: self.device, buffer: b.clone() }],
            Storage::Parts(p) => {
                let devices = self.layout.iter().flat_map(|l| l.devices()).filter(|d| d.is_local());
                devices.zip(p).map(|(device, b)| Shard { device, buffer: b.clone() }).collect()
            }
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
            Storage::Parts(p) => p.iter().all(Buffer::is_done),
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
    Array::new(Aval { cut: TypedCut::NONE, ..aval }, Data::new(Storage::Whole(buffer), device, committed))
}
/// An array of parts, one for each device of its layout that belongs to this process.
pub fn in_parts(aval: Aval, layout: Arc<Layout>, mut parts: Vec<Buffer>) -> Res<Array> {
    let aval = Aval { cut: layout.cut(), ..aval };
    let mut local = layout.devices().iter().filter(|d| d.is_local());
    let device = *local.next().ok_or_else(|| Error::value("an array needs a device of this process to lie on"))?;
    let n = 1 + local.count();
    if parts.len() != n {
        return Err(Error::value(format!("an array in {n} parts was given {} buffers", parts.len())));
    }
    let place = match parts.pop() {
        Some(one) if layout.devices().len() == 1 => Storage::Whole(one),
        last => {
            parts.extend(last);
            Storage::Parts(parts)
        }
    };
    Ok(Array::new(aval, Data { layout: Some(layout), ..Data::new(place, device, true) }))
}
/// The layout of arguments and results of `pmap`: equal parts along axis 0, one for each device; of
/// rank 0: whole on each.
pub fn rows_layout(devices: &[&'static Device], rank: usize, axis: &str) -> Res<Layout> {
    let grid = Grid::new([(axis.into(), devices.len())]);
    let mut spec = Spec::whole(rank);
    if let Some(first) = spec.dims.first_mut() {
        first.push(0);
    }
    Ok(Layout::new(Arc::new(DeviceMesh::new(grid, devices.to_vec(), "")?), spec, None))
}
/// The data of an array.
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
        Storage::Parts(p) if d.layout.as_ref().is_some_and(|l| l.is_replicated()) => {
            return Ok(Shard { device, buffer: p[0].clone() });
        }
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
/// The buffer that holds all elements; `None` where several hold parts of them. An error where this process cannot read them all.
pub fn whole(a: &Array) -> Res<Option<Buffer>> {
    Ok(match readable(data(a)?, a.aval())? {
        Readable::Whole(s) => Some(s.buffer),
        Readable::Parts(..) => None,
    })
}
/// From what this process can read all elements of an array.
enum Readable {
    Whole(Shard),
    /// Shards that hold these regions, which cover the array.
    Parts(Shards, Vec<Extents>),
}
/// INVARIANT: no buffer is taken for the whole array but by what its layout says that it holds: a process may have one part of several.
fn readable(d: &Data, aval: &Aval) -> Res<Readable> {
    let mut shards = d.shards();
    if shards.is_empty() {
        return Err(deleted(aval));
    }
    let Some(l) = &d.layout else { return Ok(Readable::Whole(shards.swap_remove(0))) };
    if !l.spec.unreduced.is_empty() {
        return Err(Error::not_implemented(
            "the parts of an unreduced array are terms of a sum that was not taken: `jax.reshard` takes it, and `.addressable_shards` shows the terms",
        ));
    }
    let held = l.local_regions(&aval.shape);
    if held.first() == Some(&parts::whole(&aval.shape)) {
        return Ok(Readable::Whole(shards.swap_remove(0)));
    }
    if !l.is_addressable() && !l.regions(&aval.shape).iter().all(|r| held.contains(r)) {
        return Err(elsewhere());
    }
    Ok(Readable::Parts(shards, held))
}
fn read(d: &Data, aval: &Aval) -> Res<Vec<u8>> {
    match readable(d, aval)? {
        Readable::Whole(one) => {
            wait(&one.buffer)?;
            runtime::read(one.device, &one.buffer)
        }
        Readable::Parts(all, held) => elements(&all, &held, &parts::whole(&aval.shape), element_bytes(aval)),
    }
}
/// A hash of the elements of an array that lies in this process alone: of one that other processes hold too, `None`. Waits; known from then on.
pub fn fingerprint(a: &Array) -> Res<Option<u64>> {
    let d = data(a)?;
    if d.layout.as_ref().is_some_and(|l| !l.is_addressable()) {
        return Ok(None);
    }
    let known = d.fingerprint.load(Ordering::Relaxed);
    if known != 0 {
        return Ok(Some(known));
    }
    let mut h = FxHasher::default();
    match whole(a)? {
        Some(b) if wait(&b).is_ok() && b.memory()?.host().is_some() => h.write(b.memory()?.host().unwrap_or(&[])),
        _ => h.write(&bytes(a)?),
    }
    let found = h.finish().max(1);
    d.fingerprint.store(found, Ordering::Relaxed);
    Ok(Some(found))
}
fn elsewhere() -> Error {
    Error::new(
        ErrorKind::Runtime,
        "Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not possible. You can use \
         `jax.experimental.multihost_utils.process_allgather` to print the global array or use `.addressable_shards` method of \
         jax.Array to inspect the addressable (process local) shards.",
    )
}
/// How many bytes of physical form an element has.
fn element_bytes(aval: &Aval) -> usize {
    let p = physical(aval);
    p.shape[aval.rank()..].iter().product::<usize>() * p.dtype.size()
}
/// The elements in the region `wanted`, from shards that hold these regions. Waits for them.
fn elements(shards: &[Shard], held: &[Extents], wanted: &Extents, width: usize) -> Res<Vec<u8>> {
    runtime::wait(shards.iter().map(|s| &s.buffer))?;
    let mut on_host = vec![];
    for s in shards {
        on_host.push(match s.buffer.memory()?.host() {
            Some(bytes) => std::borrow::Cow::Borrowed(bytes),
            None => runtime::read(s.device, &s.buffer)?.into(),
        });
    }
    parts::assembled(held.iter().zip(&on_host).map(|(r, b)| (r, &**b)), wanted, width)
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
/// Distinguishes values that were written down before a moment from later ones.
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
/// An error where the device belongs to another process.
pub fn check_local(device: &Device) -> Res<()> {
    if device.is_local() {
        return Ok(());
    }
    Err(Error::value(format!(
        "device_put's second argument must be a Device or a Sharding which represents addressable devices, but got {device}, a device of process {}. \
         Please pass device or Sharding which represents addressable devices.",
        device.process
    )))
}
/// Whether all of it is on this device, and nowhere else.
pub fn lies_on(a: &Array, device: &'static Device) -> bool {
    data(a).is_ok_and(|d| Reading::begin().whole_on(d, device).is_some())
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
/// The same elements in parts. Parts that a device holds already stay there; parts in the host's
/// memory that are whole elsewhere are shared.
pub fn lay_out(a: &Array, to: &Arc<Layout>) -> Res<Array> {
    let (aval, shards) = (a.aval(), shards(a)?);
    to.part_shape(&aval.shape)?;
    let from = match &data(a)?.layout {
        Some(l) if !l.is_addressable() && !l.is_replicated() && !l.lies_as(to, &aval.shape) => return Err(elsewhere()),
        Some(l) => l.local_regions(&aval.shape),
        None => vec![parts::whole(&aval.shape)],
    };
    let (width, wanted) = (element_bytes(aval), to.local_regions(&aval.shape));
    let mut made: Vec<Shard> = Vec::with_capacity(wanted.len());
    for (i, (device, extents)) in to.devices().iter().filter(|d| d.is_local()).zip(&wanted).enumerate() {
        check_dtype(aval, device)?;
        let there = holder(&shards, &from, extents, device).or_else(|| holder(&made, &wanted[..i], extents, device));
        let buffer = match there {
            Some(s) => s.buffer.clone(),
            None => device.backend.upload(&elements(&shards, &from, extents, width)?)?,
        };
        made.push(Shard { device, buffer });
    }
    in_parts(aval.clone(), to.clone(), made.into_iter().map(|s| s.buffer).collect())
}
/// A shard with these elements whose buffer can be used on the device, if possible its own.
fn holder<'a>(shards: &'a [Shard], held: &[Extents], wanted: &Extents, device: &Device) -> Option<&'a Shard> {
    let same = || shards.iter().zip(held).filter(|(_, e)| *e == wanted).map(|s| s.0);
    same().find(|s| s.device == device).or_else(|| same().find(|s| shares_memory(s.device, device)))
}
/// Whether both compute in the host's memory: buffers never change, so that one serves both.
fn shares_memory(a: &Device, b: &Device) -> bool {
    a.platform() == "cpu" && b.platform() == "cpu"
}
/// Another array of the same elements in the same memory: neither's deletion touches the other.
pub fn again(a: &Array) -> Res<Array> {
    let (d, aval) = (data(a)?, a.aval().clone());
    let mut shards = shards(a)?;
    match &d.layout {
        Some(l) => in_parts(aval, l.clone(), shards.into_iter().map(|s| s.buffer).collect()),
        None => Ok(array(aval, d.device, shards.remove(0).buffer, d.committed)),
    }
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
/// Waits until the buffer is ready and its device has completed the work; returns the error of a
/// failure.
pub fn finished(b: &Buffer) -> Res<()> {
    wait(b)?;
    runtime::finished(b)
}
/// Takes the lock of all places, to be held over a fork.
pub fn freeze() -> impl Any {
    PLACES.write().unwrap_or_else(|e| e.into_inner())
}
