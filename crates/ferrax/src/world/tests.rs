//! Devices as threads, in one process or in several whose messages a table carries: results, bits, bytes sent, failures.
use super::*;
use crate::processes::{Exchange, MeetingId, Message, ProgramText, Transport};
use ferrax_kernel::ReduceKind;
use ferrax_kernel::collective::Groups;
use std::sync::Condvar;

/// Sums of single-precision floats, whose order shows in their bits; of half as many bytes where elements are rounded to them.
struct Sum {
    narrow: bool,
}
fn floats(b: &[u8]) -> Vec<f32> {
    b.chunks(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}
fn bytes(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_le_bytes()).collect()
}
impl TermArithmetic for Sum {
    fn sizes(&self) -> [usize; 3] {
        [if self.narrow { 2 } else { 4 }, 4, 16]
    }
    fn widen(&self, from: &[u8], to: &mut [u8]) -> Res<()> {
        match self.narrow {
            true => to.chunks_mut(4).zip(from.chunks(2)).for_each(|(t, f)| t.copy_from_slice(&[0, 0, f[0], f[1]])),
            false => to.copy_from_slice(from),
        }
        Ok(())
    }
    fn round(&self, from: &[u8], to: &mut [u8]) -> Res<()> {
        match self.narrow {
            true => to.chunks_mut(2).zip(from.chunks(4)).for_each(|(t, f)| t.copy_from_slice(&f[2..])),
            false => to.copy_from_slice(from),
        }
        Ok(())
    }
    fn pair(&self, a: &[u8], b: &[u8], to: &mut [u8]) -> Res<()> {
        to.copy_from_slice(&bytes(&floats(a).iter().zip(floats(b)).map(|(a, b)| a + b).collect::<Vec<_>>()));
        Ok(())
    }
}

/// Messages by sender, receiver and exchange.
#[derive(Default)]
struct Table {
    messages: Mutex<HashMap<(usize, usize, u64), Vec<u8>>>,
    changed: Condvar,
}
struct Process {
    here: usize,
    table: Arc<Table>,
}
struct Waiting {
    here: usize,
    number: u64,
    from: Vec<usize>,
    table: Arc<Table>,
}
impl Transport for Process {
    fn call(&self, _: &[usize], _: u64, _: &ProgramText) -> Res<u64> {
        Ok(0)
    }
    fn begin(&self, id: MeetingId, messages: &[Message], from: &[usize]) -> Res<Box<dyn Exchange>> {
        let mut all = self.table.messages.lock().expect("no panic");
        for (to, m) in messages {
            assert!(all.insert((self.here, *to, id.number), m.to_vec()).is_none(), "two messages of one name");
        }
        self.table.changed.notify_all();
        Ok(Box::new(Waiting { here: self.here, number: id.number, from: from.to_vec(), table: self.table.clone() }))
    }
}
impl Exchange for Waiting {
    fn poll(&mut self) -> Res<Option<Vec<Vec<u8>>>> {
        let mut all = self.table.messages.lock().expect("no panic");
        let name = |p: &usize| (*p, self.here, self.number);
        if !self.from.iter().all(|p| all.contains_key(&name(p))) {
            return Ok(None);
        }
        Ok(Some(self.from.iter().filter_map(|p| all.remove(&name(p))).collect()))
    }
    fn complain(&mut self, seconds: u64) -> Res<()> {
        Err(Error::Device(format!("nothing came for {seconds} s")))
    }
    fn cancel(&mut self) {}
}

/// A mesh of these axes on as many processes, each with equal runs of its devices; and how much each process sent.
struct Run {
    meshes: Vec<Arc<Mesh>>,
    hosts: Vec<usize>,
    table: Arc<Table>,
}
fn run(axes: &[(&str, usize)], processes: usize) -> Run {
    let axes: Vec<(Arc<str>, usize)> = axes.iter().map(|(a, n)| (Arc::from(*a), *n)).collect();
    let size: usize = axes.iter().map(|a| a.1).product();
    let hosts: Vec<usize> = (0..size).map(|d| d * processes / size).collect();
    let table = Arc::<Table>::default();
    let mesh = |here: usize| {
        let transport = Arc::new(Process { here, table: table.clone() });
        let remote = Remote { here, hosts: hosts.clone(), run: 1, digest: 2, call: 3, transport };
        Mesh::over(axes.clone(), (processes > 1).then_some(remote))
    };
    Run { meshes: (0..processes).map(mesh).collect(), hosts, table }
}
impl Run {
    /// The results of `f` on each device, each on a thread of its own.
    fn on_all<T: Send>(&self, f: impl Fn(MeshMember) -> T + Sync) -> Vec<T> {
        std::thread::scope(|s| {
            let start = |(i, host): (usize, &usize)| {
                let (m, f) = (self.meshes[*host].member(i), &f);
                s.spawn(move || f(m))
            };
            let threads: Vec<_> = self.hosts.iter().enumerate().map(start).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        })
    }
    fn sent(&self) -> (u64, u64) {
        assert!(self.table.messages.lock().expect("no panic").is_empty(), "a message that nobody reads");
        let of = |f: fn(&Moved) -> &AtomicU64| self.meshes.iter().map(|m| f(&m.moved).load(Ordering::Relaxed)).sum();
        (of(|m| &m.sent_bytes), of(|m| &m.sent_messages))
    }
    fn moved(&self) -> u64 {
        self.meshes.iter().map(|m| m.moved.bytes.load(Ordering::Relaxed)).sum()
    }
}
fn operand(rank: usize, n: usize) -> Vec<f32> {
    (0..n).map(|k| ((rank * 7919 + k * 104_729) % 1009) as f32 * 0.37 + 1e-3).collect()
}
fn out_len(kind: &Collective, n: usize, group: usize) -> usize {
    match kind {
        Collective::AllGather => n * group,
        Collective::ReduceScatter(_) => n / group,
        _ => n,
    }
}
fn kinds(group: usize) -> Vec<Collective> {
    let ring = (0..group as u32).map(|i| (i, (i + 1) % group as u32)).collect();
    vec![
        Collective::AllReduce(ReduceKind::Sum),
        Collective::ReduceScatter(ReduceKind::Sum),
        Collective::AllGather,
        Collective::AllToAll,
        Collective::Permute(ring),
        Collective::Permute(vec![(0, group as u32 - 1)]),
    ]
}
/// What each device gets, twice over.
fn results(r: &Run, across: &Across, kind: &Collective, elements: usize, narrow: bool) -> Vec<Vec<u8>> {
    let sum = Sum { narrow };
    r.on_all(|m| {
        let (_, group) = m.rank(across).expect("a group");
        let mine = bytes(&operand(m.rank, elements));
        let mut out = vec![0; out_len(kind, mine.len(), group)];
        for _ in 0..2 {
            m.meet(across, kind, &mine, &mut out, Some(&sum)).expect("no failure");
        }
        out
    })
}
/// Every collective, along every choice of axes, gives what its definition gives, whichever processes devices belong to.
#[test]
fn results_are_those_of_the_definition() {
    let axes = [("i", 2), ("j", 3)];
    let groups = Some(Groups::new([vec![2, 0, 1]]));
    let all: Vec<Across> = [&["i"][..], &["j"], &["i", "j"], &["j", "i"]]
        .iter()
        .map(|names| Across::axes(names.iter().map(|a| Arc::from(*a)).collect::<Vec<_>>()))
        .chain([Across { groups, ..Across::axes(["j".into()]) }])
        .collect();
    for across in &all {
        for elements in [0, 6, 96, 6 * 1024 + 6] {
            for narrow in [false, true] {
                let one = run(&axes, 1);
                let groups: Vec<(Vec<usize>, usize)> =
                    (0..6).map(|d| one.meshes[0].member(d).group(across).expect("a group")).collect();
                for kind in kinds(groups[0].0.len()) {
                    let want: Vec<Vec<u8>> = groups
                        .iter()
                        .map(|(members, at)| {
                            let all: Vec<Vec<u8>> = members.iter().map(|m| bytes(&operand(*m, elements))).collect();
                            let all: Vec<&[u8]> = all.iter().map(|b| &b[..]).collect();
                            let mut out = vec![0; out_len(&kind, all[0].len(), all.len())];
                            kind.result(&all, *at, &mut out, Some(&Sum { narrow })).expect("it fits");
                            out
                        })
                        .collect();
                    for processes in [1, 2, 3, 6] {
                        let got = results(&run(&axes, processes), across, &kind, elements, narrow);
                        assert!(got == want, "{kind} over {across:?} of {elements} elements in {processes} processes");
                    }
                }
            }
        }
    }
}
/// No process sends a byte that another one has no use for, nor one twice.
#[test]
fn bytes_between_processes_are_the_least() {
    let across = Across::axes(["i".into()]);
    let n = 4 * 8 * 1024_u64;
    for processes in [2, 4, 8] {
        let p = processes as u64;
        let sent = |kind: &Collective| {
            let r = run(&[("i", 8)], processes);
            results(&r, &across, kind, n as usize / 4, false);
            let (bytes, messages) = r.sent();
            (bytes / 2, messages / 2) // `results` meets twice
        };
        let pairs = p * (p - 1);
        let [sum, scattered, gathered, all_to_all, ring, one]: [Collective; 6] =
            kinds(8).try_into().expect("six collectives");
        assert_eq!(sent(&sum), (2 * n * (p - 1), 2 * pairs));
        assert_eq!(sent(&scattered), (n * (p - 1), pairs));
        assert_eq!(sent(&gathered), (8 * n * (p - 1), pairs));
        assert_eq!(sent(&all_to_all), (n / 8 * (8 / p) * (8 / p) * pairs, pairs));
        assert_eq!(sent(&ring), (n * p, p));
        assert_eq!(sent(&one), (n, 1));
    }
}
#[test]
fn groups_follow_the_axes() {
    let of = |names: &[&str], rank: usize, groups: Option<Groups>| {
        let axes: Vec<Arc<str>> = names.iter().map(|a| Arc::from(*a)).collect();
        let mesh = run(&[("i", 2), ("j", 3)], 1).meshes.remove(0);
        mesh.member(rank).group(&Across { groups, ..Across::axes(axes) }).expect("a group")
    };
    assert_eq!(of(&["j"], 4, None), (vec![3, 4, 5], 1));
    assert_eq!(of(&["i"], 4, None), (vec![1, 4], 1));
    assert_eq!(of(&["j", "i"], 0, None), (vec![0, 3, 1, 4, 2, 5], 0));
    assert_eq!(of(&["j"], 5, Some(Groups::new([vec![2, 0], vec![1]]))), (vec![5, 3], 0));
}
#[test]
fn a_failure_wakes_everybody() {
    for n in [8, MAX_COPIED] {
        for kind in kinds(3) {
            let r = run(&[("i", 3)], 1).on_all(|m| {
                if m.rank == 1 {
                    m.fail(Error::Cancelled);
                    return Err(Error::Cancelled);
                }
                let mine = bytes(&operand(m.rank, n * 3));
                let mut out = vec![0; out_len(&kind, mine.len(), 3)];
                m.meet(&Across::axes(["i".into()]), &kind, &mine, &mut out, Some(&Sum { narrow: false }))
            });
            // of a permutation only those that read of it need it
            let needs = |at: usize| !matches!(kind, Collective::Permute(_)) || kind.source(at) == Some(1);
            assert!(r.iter().enumerate().all(|(at, x)| x.is_err() || at != 1 && !needs(at)), "{kind}");
        }
    }
}
#[test]
fn a_device_that_does_not_come_is_missed() {
    for n in [8, MAX_COPIED] {
        let r = run(&[("i", 3)], 1).on_all(|m| {
            let mine = bytes(&operand(m.rank, n));
            let meet = |_| {
                let mut out = vec![0; 3 * mine.len()];
                m.meet(&Across::axes(["i".into()]), &Collective::AllGather, &mine, &mut out, None)
            };
            (0..if m.rank == 1 { 2 } else { 3 }).try_for_each(meet).inspect_err(|e| m.fail(e.clone()))
        });
        assert_eq!(r.iter().map(|x| x.is_ok()).collect::<Vec<_>>(), [false, true, false]);
        assert!(format!("{:?}", r[0]).contains("device 1"));
    }
}
/// An all-reduce of n bytes over p devices moves 2n(p-1)/p to each; the other collectives what they read.
#[test]
fn bytes_are_those_of_the_model() {
    let n = 1 << 15;
    let across = Across::axes(["i".into()]);
    for p in [1, 2, 4, 8] {
        let moved = |kind: &Collective| {
            let r = run(&[("i", p)], 1);
            results(&r, &across, kind, n / 4, false);
            r.moved() as usize / 2
        };
        let each = n * (p - 1);
        let [sum, scattered, gathered, all_to_all, ring, _]: [Collective; 6] =
            kinds(p).try_into().expect("six collectives");
        assert_eq!(moved(&sum), 2 * each);
        assert_eq!(moved(&scattered), each);
        assert_eq!(moved(&gathered), each * p);
        assert_eq!(moved(&all_to_all), each);
        assert_eq!(moved(&ring), if p == 1 { 0 } else { n * p });
    }
}
/// A message of another size than what a process expects is an error, and no read beyond its end.
#[test]
fn messages_of_another_size_are_errors() {
    let r = run(&[("i", 2)], 2);
    let got = r.on_all(|m| {
        let mine = bytes(&operand(m.rank, 4 * (m.rank + 1)));
        let mut out = vec![0; 2 * mine.len()];
        m.meet(&Across::axes(["i".into()]), &Collective::AllGather, &mine, &mut out, None)
    });
    assert!(got.iter().all(Result::is_err));
}
