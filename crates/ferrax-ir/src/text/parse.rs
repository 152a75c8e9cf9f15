//! Parsing, which includes verification: declared types must equal those that `infer` gives.
use crate::aval::{Aval, Lit};
use crate::cx::Fun;
use crate::dtype::Dtype;
use crate::error::{Error, Res};
use crate::op::Op;
use crate::param::{Param, ParamMap};
use crate::program::{Atom, Eqn, Program};
use crate::vary::Vary;
use ferrax_kernel::Dims;
use std::collections::HashMap;
use std::sync::Arc;

/// Programs nested deeper than this are refused: the parser recurses into them.
const MAX_DEPTH: usize = 100;

struct Parser<'a> {
    s: &'a str,
    at: usize,
    depth: usize,
    shared: HashMap<String, Arc<Program>>,
    funs: &'a HashMap<String, Fun>,
}
type VarNumbers = HashMap<String, u32>;

/// Parses the text of a program.
pub fn parse(s: &str) -> Res<Program> {
    parse_with(s, &HashMap::new())
}
/// The same, where the text may name functions of the host language.
pub fn parse_with(s: &str, funs: &HashMap<String, Fun>) -> Res<Program> {
    let mut p = Parser { s, at: 0, depth: 0, shared: HashMap::new(), funs };
    while p.keyword("let") {
        let name = p.word().to_string();
        p.want("=")?;
        let q = p.program()?;
        p.shared.insert(name, Arc::new(q));
        if !p.keyword("in") {
            return p.fail("wants `in`");
        }
    }
    let out = p.program()?;
    p.space();
    if p.at == s.len() { Ok(out) } else { p.fail("text after the program") }
}

/// A primitive applied to types, `reduce_sum[axes=(0,)] f32[2,3]`: the op, and the operands' types. Parameters that a program's text
/// leaves to the output's type are written out here.
pub fn parse_application(s: &str) -> Res<(Op, Vec<Aval>)> {
    let mut p = Parser { s, at: 0, depth: 0, shared: HashMap::new(), funs: &HashMap::new() };
    let (name, params) = p.primitive()?;
    let mut avals = vec![];
    while p.peek() != '\0' {
        avals.push(p.aval()?);
    }
    Ok((Op::from_name(name, params)?, avals))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_<>.".contains(c)
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, what: &str) -> Res<T> {
        Err(Error::value(format!(
            "{what} at byte {}: ...{}",
            self.at,
            self.s[self.at..].chars().take(40).collect::<String>()
        )))
    }
    fn space(&mut self) {
        let rest = &self.s[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }
    fn eat(&mut self, t: &str) -> bool {
        self.space();
        let hit = self.s[self.at..].starts_with(t);
        self.at += if hit { t.len() } else { 0 };
        hit
    }
    fn want(&mut self, t: &str) -> Res<()> {
        if self.eat(t) { Ok(()) } else { self.fail(&format!("wants `{t}`")) }
    }
    fn peek(&mut self) -> char {
        self.space();
        self.s[self.at..].chars().next().unwrap_or('\0')
    }
    /// A run of word characters.
    fn run(&mut self, ok: impl Fn(char) -> bool) -> &'a str {
        self.space();
        let rest = &self.s[self.at..];
        let n = rest.find(|c: char| !ok(c)).unwrap_or(rest.len());
        self.at += n;
        &rest[..n]
    }
    /// A name, without dots.
    fn word(&mut self) -> &'a str {
        self.run(|c| is_word(c) && c != '.')
    }
    fn keyword(&mut self, w: &str) -> bool {
        let at = self.at;
        let hit = self.word() == w;
        if !hit {
            self.at = at;
        }
        hit
    }
    fn aval(&mut self) -> Res<Aval> {
        let mut tape = 0u8;
        while self.keyword("tape") {
            tape = tape.saturating_add(1);
        }
        let Some(dtype) = Dtype::from_short(self.word()) else { return self.fail("wants a dtype") };
        self.want("[")?;
        let mut shape = Dims::default();
        while !self.eat("]") {
            match self.word().parse() {
                Ok(n) => shape.push(n),
                Err(_) => return self.fail("wants a size"),
            }
            // axes that cut it are not read back: their mesh is not in the text
            if self.eat("@") && self.eat("(") {
                while !self.eat(")") {
                    if self.word().is_empty() {
                        return self.fail("wants the name of an axis");
                    }
                    self.eat(",");
                }
            } else if self.s[..self.at].ends_with('@') {
                self.word();
            }
            self.eat(",");
        }
        shape.checked(dtype.size())?;
        Ok(Aval { tape, vary: self.vary()?, ..Aval::of(dtype, shape) })
    }
    /// The axes after a type over which it varies: `{V:i}`, `{V:(i,j)}` or nothing.
    fn vary(&mut self) -> Res<Vary> {
        if !self.s[self.at..].starts_with("{V:") {
            return Ok(Vary::NONE);
        }
        self.want("{V:")?;
        let (several, mut names) = (self.eat("("), vec![]);
        loop {
            match self.word() {
                "" => return self.fail("wants the name of an axis"),
                name => names.push(name.into()),
            }
            if !several || !self.eat(",") {
                break;
            }
        }
        if several {
            self.want(")")?;
        }
        self.want("}")?;
        Ok(Vary::of(names))
    }
    fn binders(&mut self, end: &str, names: &mut VarNumbers, avals: &mut Vec<Aval>) -> Res<()> {
        while !self.eat(end) {
            let name = self.word();
            if name.is_empty() {
                return self.fail("wants a name");
            }
            self.want(":")?;
            let aval = self.aval()?;
            names.insert(name.into(), avals.len() as u32);
            avals.push(aval);
        }
        Ok(())
    }
    /// Whether a literal starts here: a digit, a sign, a bracketed complex number, or one of
    /// Python's words.
    fn literal_ahead(&mut self) -> bool {
        let c = self.peek();
        let rest = &self.s[self.at..];
        c.is_ascii_digit()
            || c == '-'
            || c == '('
            || ["nan:", "inf:", "True:", "False:"].iter().any(|w| rest.starts_with(w))
    }
    fn literal(&mut self) -> Res<Lit> {
        let rest = &self.s[self.at..];
        let Some(n) = rest.find(':') else { return self.fail("wants `:`") };
        let w = rest[..n].trim();
        self.at += n + 1;
        let dtype = self.aval()?.dtype;
        let lit = match dtype {
            Dtype::BOOL => Some(Lit::from(w == "True")),
            Dtype::Num(_) if dtype.is_int() => w.parse::<i128>().ok().map(|i| Lit::from_i64(dtype, i as i64)),
            Dtype::Num(_) => w.parse::<f64>().ok().map(|x| Lit::from_f64(dtype, x)),
            Dtype::C64 | Dtype::C128 => {
                // a complex128 that single precision does not hold is not a literal
                let fits = |x: f64| dtype == Dtype::C64 || x.is_nan() || (x as f32) as f64 == x;
                let parts = complex(w).filter(|(re, im)| fits(*re) && fits(*im));
                parts.map(|(re, im)| Lit::complex(dtype, re as f32, im as f32, false))
            }
            _ => None,
        };
        lit.map_or_else(|| self.fail("wants a literal"), Ok)
    }
    fn atom(&mut self, names: &VarNumbers) -> Res<Atom> {
        if self.literal_ahead() {
            return self.literal().map(Atom::Lit);
        }
        let at = self.at;
        match names.get(self.word()) {
            Some(v) => Ok(Atom::Var(*v)),
            None => {
                self.at = at;
                self.fail("no variable of that name")
            }
        }
    }
    /// True where an equation's operands go on: a literal, or a name that is neither `in`, the next equation's binder, nor (where it
    /// binds nothing) the next equation's primitive.
    fn more_args(&mut self, names: &VarNumbers) -> bool {
        if self.literal_ahead() {
            return true;
        }
        let at = self.at;
        let w = self.word();
        let more = !w.is_empty() && w != "in" && names.contains_key(w) && !matches!(self.peek(), ':' | '[');
        self.at = at;
        more
    }
    /// The value of the parameter `key`, which distinguishes a shared program from a string or a function of the same name.
    fn param(&mut self, key: &str) -> Res<Param> {
        if key == "name" {
            return Ok(Param::Str(self.run(|c| !c.is_whitespace() && c != ']').into()));
        }
        match self.peek() {
            '{' => return Ok(Param::Prog(Arc::new(self.program()?))),
            '(' => return self.items(key, "(", ")").map(Param::Tuple),
            '[' => return self.items(key, "[", "]").map(Param::List),
            _ => (),
        }
        if self.eat("'") {
            let text = self.run(|c| c != '\'').into();
            self.want("'")?;
            return Ok(Param::Str(text));
        }
        let at = self.at;
        let neg = self.eat("-");
        let w = self.run(|c| is_word(c) || c == '+' || c == '-');
        if let Ok(i) = w.parse::<i64>() {
            return Ok(Param::Int(if neg { -i } else { i }));
        }
        if (w.starts_with(|c: char| c.is_ascii_digit()) || neg || w == "inf" || w == "nan")
            && let Ok(x) = w.parse::<f64>()
        {
            return Ok(Param::Float(if neg { -x } else { x }));
        }
        if w == "tape" || Dtype::from_short(w).is_some() && self.s[self.at..].starts_with('[') {
            self.at = at;
            return Ok(Param::Aval(self.aval()?));
        }
        if !w.is_empty() && self.s[self.at..].starts_with('(') {
            // a record: its fields come in order, so their names are redundant
            self.want("(")?;
            let mut fields = vec![];
            while !self.eat(")") {
                self.word();
                self.want("=")?;
                fields.push(("", self.param("")?));
                self.eat(",");
            }
            return Ok(Param::Struct("", fields));
        }
        Ok(match w {
            "" => return self.fail("wants a parameter"),
            "None" => Param::None,
            "True" => Param::Bool(true),
            "False" => Param::Bool(false),
            w => match (
                self.shared.get(w).filter(|_| key.ends_with("jaxpr") || key == "branches" || key == "jaxprs"),
                self.funs.get(w),
                Dtype::from_long(w),
                w.split_once('.'),
            ) {
                (Some(p), ..) => Param::Prog(p.clone()),
                (_, Some(f), ..) => Param::Fun(f.clone()),
                (_, _, Some(d), _) => Param::Dtype(d),
                (_, _, _, Some((_, n))) => Param::Enum("", n.into()),
                _ => Param::Str(w.into()),
            },
        })
    }
    fn items(&mut self, key: &str, open: &str, close: &str) -> Res<Vec<Param>> {
        self.want(open)?;
        let mut v = vec![];
        while !self.eat(close) {
            v.push(self.param(key)?);
            self.eat(",");
        }
        Ok(v)
    }
    fn program(&mut self) -> Res<Program> {
        if self.depth == MAX_DEPTH {
            return self.fail("programs are nested too deep");
        }
        self.depth += 1;
        let p = self.program_here();
        self.depth -= 1;
        p
    }
    fn program_here(&mut self) -> Res<Program> {
        let (mut names, mut avals, mut eqns, mut outs) = (VarNumbers::new(), vec![], vec![], vec![]);
        self.want("{")?;
        self.want("lambda")?;
        self.binders(";", &mut names, &mut avals)?;
        let n_consts = avals.len();
        self.binders(".", &mut names, &mut avals)?;
        let n_ins = avals.len();
        self.want("let")?;
        while !self.keyword("in") {
            if self.eat(";") {
                continue;
            }
            let first = avals.len();
            let mut new_names = VarNumbers::new(); // not in scope for this equation's own operands
            if self.binds() {
                self.binders("=", &mut new_names, &mut avals)?;
            }
            let (name, mut params) = self.primitive()?;
            let mut args = smallvec::SmallVec::new();
            while self.more_args(&names) {
                args.push(self.atom(&names)?);
            }
            params.outs = avals[first..].to_vec();
            let op = Op::from_name(name, params).or_else(|e| self.fail(e.message()))?;
            names.extend(new_names);
            let eqn = Eqn { op, args, n_out: (avals.len() - first) as u32 };
            check(&eqn, &avals).or_else(|e| self.fail(e.message()))?;
            eqns.push(eqn);
        }
        self.want("(")?;
        while !self.eat(")") {
            outs.push(self.atom(&names)?);
            self.eat(",");
        }
        self.want("}")?;
        Program::new(n_consts, n_ins, avals, eqns, outs, vec![])
    }
    /// A primitive's name and its parameters.
    fn primitive(&mut self) -> Res<(&'a str, ParamMap)> {
        let name = self.run(|c| is_word(c) || c == '-'); // `scatter-add`
        let mut params = ParamMap::default();
        if self.eat("[") {
            while !self.eat("]") {
                let key = self.word();
                self.want("=")?;
                let value = self.param(key)?;
                params.insert(key.to_string(), value);
            }
        }
        Ok((name, params))
    }
    /// Whether an equation's binders come next, rather than (where it has no output) its primitive.
    fn binds(&mut self) -> bool {
        let at = self.at;
        self.word();
        let binds = self.peek() == ':';
        self.at = at;
        binds
    }
}
fn complex(w: &str) -> Option<(f64, f64)> {
    let w = w.trim_start_matches('(').trim_end_matches(')').strip_suffix('j')?;
    match w.char_indices().skip(1).filter(|(i, c)| "+-".contains(*c) && !w[..*i].ends_with('e')).last() {
        Some((i, _)) => Some((w[..i].parse().ok()?, w[i..].parse().ok()?)),
        None => Some((0.0, w.parse().ok()?)),
    }
}
/// Checks that the declared types are those of `infer`.
fn check(e: &Eqn, avals: &[Aval]) -> Res<()> {
    let aval = |a: &Atom| match a {
        Atom::Var(v) => avals[*v as usize].clone(),
        Atom::Lit(l) => l.aval(),
    };
    let ins: Vec<Aval> = e.args.iter().map(aval).collect();
    let out = e.op.results(&ins)?;
    let declared = &avals[avals.len() - e.n_out as usize..];
    if crate::aval::same_avals(&out, declared) {
        Ok(())
    } else {
        Err(Error::value(format!("{} returns {out:?}, not {declared:?}", e.op.name())))
    }
}
