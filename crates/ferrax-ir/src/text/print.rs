//! Printing, through a document of groups that lie on one line if they fit into 80 columns and break otherwise.
use crate::op::Op;
use crate::param::{Param, Show};
use crate::program::{Atom, Program};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

const WIDTH: usize = 80;
/// Names the parser reads as something else.
const RESERVED: [&str; 5] = ["in", "let", "nan", "inf", "tape"];

/// A text that can be laid out in more than one way.
pub enum Doc {
    Text(String),
    /// A line break, or this text if the group is printed flat.
    Break(&'static str),
    Cat(Vec<Doc>),
    /// Breaks inside indent by so much more.
    Nest(usize, Box<Doc>),
    /// Flat if it fits (its flat width is remembered), else broken.
    Group(Box<Doc>, usize),
    /// A comment on the line it falls on; it takes no width.
    Note(String),
}
impl Doc {
    fn width(&self) -> usize {
        match self {
            Doc::Text(s) => s.chars().count(),
            Doc::Break(s) => s.len(),
            Doc::Cat(v) => v.iter().map(Doc::width).sum(),
            Doc::Nest(_, d) => d.width(),
            Doc::Group(_, w) => *w,
            Doc::Note(_) => 0,
        }
    }
    fn group(d: Doc) -> Doc {
        let w = d.width();
        Doc::Group(Box::new(d), w)
    }
    fn nest(n: usize, d: Doc) -> Doc {
        Doc::Nest(n, Box::new(d))
    }
    /// A space, or a new line indented by two.
    fn soft() -> Doc {
        Doc::group(Doc::nest(2, Doc::Break(" ")))
    }
    fn render(&self) -> String {
        let mut s = String::new();
        let mut notes: Vec<(usize, &str)> = vec![];
        let mut col = 0;
        let mut stack: Vec<(usize, bool, &Doc)> = vec![(0, false, self)];
        while let Some((indent, flat, d)) = stack.pop() {
            match d {
                Doc::Text(t) => {
                    s += t;
                    col += t.chars().count();
                }
                Doc::Break(t) if flat => {
                    s += t;
                    col += t.len();
                }
                Doc::Break(_) => {
                    s.push('\n');
                    s.extend(std::iter::repeat_n(' ', indent));
                    col = indent;
                }
                Doc::Note(n) => notes.push((s.len(), n)),
                Doc::Cat(v) => stack.extend(v.iter().rev().map(|d| (indent, flat, d))),
                Doc::Nest(n, d) => stack.push((indent + n, flat, d)),
                Doc::Group(d, w) => stack.push((indent, flat || col + w <= WIDTH, d)),
            }
        }
        if notes.is_empty() { s } else { annotated(&s, &notes) }
    }
}
/// Comments in a column of their own, each beside the line it belongs to; a second one of a line goes below it.
fn annotated(s: &str, notes: &[(usize, &str)]) -> String {
    let column = s.lines().map(|l| l.chars().count()).max().unwrap_or(0) + 1;
    let (mut out, mut end, mut notes) = (String::new(), 0, notes.iter().peekable());
    for (i, line) in s.lines().enumerate() {
        end += line.len() + usize::from(i > 0);
        if i > 0 {
            out.push('\n');
        }
        out += line;
        let mut at = line.chars().count();
        while let Some((_, note)) = notes.next_if(|(pos, _)| *pos <= end) {
            if at == 0 {
                out.push('\n');
            }
            out.extend(std::iter::repeat_n(' ', column - at));
            out += "# ";
            out += note;
            at = 0;
        }
    }
    out
}
fn text(s: impl Into<String>) -> Doc {
    Doc::Text(s.into())
}

/// The notes beside each equation.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    /// The user's source lines.
    Lines,
    /// The names of the scopes it was traced in.
    Names,
    Both,
}
impl Beside {
    fn note(self, line: u32) -> String {
        let place = || crate::cx::place(line).unwrap_or_default();
        let names = || format!("[{}]", crate::cx::names(line));
        match self {
            Beside::Nothing => String::new(),
            Beside::Lines => place(),
            Beside::Names => names(),
            Beside::Both => format!("{} {}", place(), names()),
        }
    }
}
struct Printer {
    next: usize,
    beside: Beside,
    shared: HashMap<*const Program, String>,
}

pub fn print(p: &Program) -> String {
    doc(p, Beside::Nothing).render()
}
/// Prints the user's line and the names of the enclosing scopes beside each equation, on request.
pub fn print_with(p: &Program, lines: bool, names: bool) -> String {
    let beside = match (lines, names) {
        (false, false) => Beside::Nothing,
        (true, false) => Beside::Lines,
        (false, true) => Beside::Names,
        (true, true) => Beside::Both,
    };
    doc(p, beside).render()
}
fn doc(p: &Program, beside: Beside) -> Doc {
    let (shared, order) = find_shared(p);
    let mut me = Printer { next: 0, beside, shared };
    let mut parts = vec![];
    for q in order {
        let name = me.shared[&Arc::as_ptr(&q)].clone();
        parts.push(text(format!("let {name} = ")));
        parts.push(me.program(&q, None, None));
        parts.push(text(" in"));
        parts.push(Doc::Break(" "));
    }
    parts.push(me.program(p, None, None));
    Doc::Cat(parts)
}

fn programs_of(op: &Op) -> Vec<Arc<Program>> {
    fn walk(p: &Param, out: &mut Vec<Arc<Program>>) {
        match p {
            Param::Prog(p) => out.push(p.clone()),
            Param::Tuple(v) | Param::List(v) => v.iter().for_each(|p| walk(p, out)),
            _ => (),
        }
    }
    let mut out = vec![];
    if op.body().is_some() || matches!(op, Op::CustomLin(_)) {
        op.params().iter().filter(|p| p.2 != Show::hidden).for_each(|p| walk(&p.1, &mut out));
    }
    out
}

/// The programs that more than one equation holds, and an order in which each comes after those it holds.
fn find_shared(p: &Program) -> (HashMap<*const Program, String>, Vec<Arc<Program>>) {
    fn visit(p: &Program, uses: &mut HashMap<*const Program, (usize, String)>, order: &mut Vec<Arc<Program>>) {
        for e in p.eqns() {
            let label = match &e.op {
                Op::Call(c) => c.name.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect(),
                _ => String::new(),
            };
            for q in programs_of(&e.op) {
                let n = uses.entry(Arc::as_ptr(&q)).or_insert((0, label.clone()));
                n.0 += 1;
                if n.0 == 1 {
                    visit(&q, uses, order);
                    order.push(q);
                }
            }
        }
    }
    let (mut uses, mut order) = (HashMap::new(), vec![]);
    visit(p, &mut uses, &mut order);
    order.retain(|q| uses[&Arc::as_ptr(q)].0 > 1);
    let (mut names, mut taken) = (HashMap::new(), HashMap::<String, usize>::new());
    for q in &order {
        let label = &uses[&Arc::as_ptr(q)].1;
        let base =
            if label.is_empty() || label.starts_with(|c: char| c.is_ascii_digit()) || RESERVED.contains(&&**label) {
                "jaxpr"
            } else {
                label
            };
        let n = taken.entry(base.to_string()).or_insert(0);
        names.insert(Arc::as_ptr(q), if *n == 0 { base.to_string() } else { format!("{base}{n}") });
        *n += 1;
    }
    (names, order)
}

/// The name of the i-th variable: a .. z, ba, bb, ..
pub fn letters(mut i: usize) -> String {
    let mut name = vec![];
    loop {
        name.push(b'a' + (i % 26) as u8);
        i /= 26;
        if i == 0 {
            break;
        }
    }
    name.reverse();
    name.into_iter().map(char::from).collect()
}

impl Printer {
    fn fresh(&mut self) -> String {
        loop {
            let name = letters(self.next);
            self.next += 1;
            if !RESERVED.contains(&&*name) {
                return name;
            }
        }
    }
    /// `ins`, `outs`: the names that the equation with the program gives its operands and results
    /// (jit's inner names are the outer ones).
    fn program(&mut self, p: &Program, ins: Option<Vec<Option<String>>>, outs: Option<&[String]>) -> Doc {
        let mut used = vec![false; p.avals().len()];
        for a in p.eqns().iter().flat_map(|e| e.args.iter()).chain(p.outs()) {
            if let Atom::Var(v) = a {
                used[*v as usize] = true;
            }
        }
        let mut given: HashMap<usize, String> = HashMap::new();
        for (a, name) in p.outs().iter().zip(outs.unwrap_or(&[])) {
            if let Atom::Var(v) = a
                && *v as usize >= p.first_var()
                && name != "_"
            {
                given.entry(*v as usize).or_insert(name.clone());
            }
        }
        let mut names: Vec<String> = Vec::with_capacity(p.avals().len());
        let n_held = p.held().len();
        for v in 0..p.first_var() {
            let outer = ins.as_ref().and_then(|i| v.checked_sub(n_held).and_then(|i_| i.get(i_))).cloned().flatten();
            let name = outer.filter(|n| !names.contains(n)).unwrap_or_else(|| self.fresh());
            names.push(name);
        }
        let binder = |names: &[String], v: usize| text(format!("{}:{}", names[v], p.avals()[v]));
        let n_consts = n_held + p.n_consts();
        let mut head = vec![text("{ lambda")];
        for v in 0..n_consts {
            head.push(Doc::group(Doc::Break(" ")));
            head.push(binder(&names, v));
        }
        head.push(text(if n_consts == 0 { " ; " } else { "; " }));
        for v in n_consts..p.first_var() {
            if v > n_consts {
                head.push(Doc::group(Doc::Break(" ")));
            }
            head.push(binder(&names, v));
        }
        head.push(text(". let"));
        let mut body = vec![Doc::Break(" ")];
        for (i, e) in p.eqns().iter().enumerate() {
            if i > 0 {
                body.push(Doc::Break("; "));
            }
            let first = names.len();
            let mut eqn = vec![];
            for v in first..first + e.n_out as usize {
                let name = match (given.remove(&v), used[v]) {
                    (Some(n), _) => n,
                    (None, true) => self.fresh(),
                    (None, false) => "_".into(),
                };
                names.push(name);
                eqn.push(binder(&names, v));
                eqn.push(if v + 1 < first + e.n_out as usize { Doc::soft() } else { text(" = ") });
            }
            eqn.push(text(e.op.name()));
            if self.beside != Beside::Nothing {
                eqn.push(Doc::Note(self.beside.note(p.lines()[i])));
            }
            let call = match &e.op {
                Op::Call(_) => {
                    let arg = |a: &Atom| if let Atom::Var(v) = a { Some(names[*v as usize].clone()) } else { None };
                    Some((e.args.iter().map(arg).collect(), names[first..].to_vec()))
                }
                _ => None,
            };
            eqn.extend(self.params(&e.op, call));
            for a in &e.args {
                eqn.push(Doc::soft());
                eqn.push(atom(a, &names));
            }
            if e.args.is_empty() {
                eqn.push(text(" "));
            }
            body.push(Doc::Cat(eqn));
        }
        let mut tail = String::from("in (");
        for (i, a) in p.outs().iter().enumerate() {
            if i > 0 {
                tail += ", ";
            }
            if let Doc::Text(t) = atom(a, &names) {
                tail += &t;
            }
        }
        tail += if p.n_outs() == 1 { ",) }" } else { ") }" };
        Doc::group(Doc::Cat(vec![
            Doc::nest(4, Doc::Cat(head)),
            Doc::nest(4, Doc::Cat(body)),
            Doc::nest(2, Doc::Cat(vec![Doc::Break(" "), text(tail)])),
        ]))
    }
    fn params(&mut self, op: &Op, call: Option<(Vec<Option<String>>, Vec<String>)>) -> Option<Doc> {
        let shown = |p: &(&str, Param, Show)| match p.2 {
            Show::always => true,
            Show::nonempty => !p.1.is_empty(),
            Show::hidden => false,
        };
        let params: Vec<_> = op.params().into_iter().filter(shown).collect();
        if params.is_empty() {
            return None;
        }
        let mut inner = vec![Doc::Break("")];
        for (i, (k, p, _)) in params.iter().enumerate() {
            if i > 0 {
                inner.push(Doc::Break(" "));
            }
            inner.push(text(format!("{k}=")));
            let value = match (p, &call) {
                (Param::Prog(q), Some((ins, outs))) if !self.shared.contains_key(&Arc::as_ptr(q)) => {
                    self.program(q, Some(ins.clone()), Some(outs))
                }
                _ => self.param(p),
            };
            inner.push(value);
        }
        Some(Doc::group(Doc::Cat(vec![text("["), Doc::nest(2, Doc::Cat(inner)), Doc::Break(""), text("]")])))
    }
    fn param(&mut self, p: &Param) -> Doc {
        match p {
            Param::Prog(q) => match self.shared.get(&Arc::as_ptr(q)) {
                Some(name) => text(name.clone()),
                None => self.program(q, None, None),
            },
            Param::Tuple(v) if v.iter().any(|p| matches!(p, Param::Prog(_))) => {
                let mut inner = vec![];
                for p in v {
                    inner.push(Doc::Break(" "));
                    inner.push(self.param(p));
                }
                Doc::group(Doc::Cat(vec![text("("), Doc::nest(2, Doc::Cat(inner)), Doc::Break(" "), text(")")]))
            }
            p => text(scalar(p)),
        }
    }
}
/// A parameter as programs print it.
pub fn param(p: &Param) -> String {
    scalar(p)
}
fn scalar(p: &Param) -> String {
    // a string is bare by itself, quoted within a tuple
    let item = |p: &Param| if let Param::Str(s) = p { format!("'{s}'") } else { scalar(p) };
    let join = |v: &[Param]| v.iter().map(item).collect::<Vec<_>>().join(", ");
    match p {
        Param::None => "None".into(),
        Param::Bool(b) => if *b { "True" } else { "False" }.into(),
        Param::Int(i) => i.to_string(),
        Param::Float(x) => ferrax_kernel::Scalar::f64(*x).to_string(),
        Param::Str(s) => s.to_string(),
        Param::Dtype(d) => d.long().into(),
        Param::Enum(t, n) => format!("{t}.{n}"),
        Param::Tuple(v) if v.len() == 1 => format!("({},)", item(&v[0])),
        Param::Tuple(v) => format!("({})", join(v)),
        Param::List(v) => format!("[{}]", join(v)),
        Param::Struct(t, v) => {
            format!("{t}({})", v.iter().map(|(k, p)| format!("{k}={}", scalar(p))).collect::<Vec<_>>().join(", "))
        }
        Param::Fun(f) => f.name().into(),
        Param::Aval(a) => a.to_string(),
        Param::Policy(p) => p.name().into(),
        Param::Host(f) => f.name.to_string(),
        Param::Prog(_) => "{..}".into(),
    }
}
fn atom(a: &Atom, names: &[String]) -> Doc {
    match a {
        Atom::Var(v) => text(names[*v as usize].clone()),
        Atom::Lit(l) => text(format!("{l}:{}[]", l.dtype())),
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&print(self))
    }
}
