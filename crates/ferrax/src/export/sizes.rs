//! Expressions over symbolic sizes in exported programs' shapes: `2*b + floordiv(c, 3) - 1`.
//!
//! INVARIANT: evaluation is exact: overflow of 64 bits and division by zero are errors. Parsing has
//! bounded recursion.
use ferrax_ir::error::{Res, value_err};

/// Brackets nested deeper than this are refused.
const MAX_DEPTH: usize = 50;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    Number(i64),
    /// The variable of that number.
    Variable(usize),
    Sum(Vec<SizeExpr>),
    Product(Vec<SizeExpr>),
    Power(Box<SizeExpr>, u32),
    FloorDiv(Box<[SizeExpr; 2]>),
    Mod(Box<[SizeExpr; 2]>),
    Max(Box<[SizeExpr; 2]>),
    Min(Box<[SizeExpr; 2]>),
    /// A quotient, for constants; not a part of other expressions.
    Ratio(Box<[SizeExpr; 2]>),
}
/// An expression over the variables of an exported program.
///
/// ```
/// use ferrax::export::SizeExpr;
/// let n = SizeExpr::parse("2*b + 1", &["b".into()])?;
/// assert_eq!((n.value(&[Some(3)])?, n.number()), (7, None));
/// # Ok::<(), ferrax::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SizeExpr(Form);

impl SizeExpr {
    /// Reads `text`, whose names are among `variables`.
    ///
    /// # Errors
    /// `Value` if it is no expression.
    pub fn parse(text: &str, variables: &[String]) -> Res<SizeExpr> {
        let mut p = SizeParser { rest: text.trim_start(), variables, depth: 0 };
        let is_ratio = p.rest.starts_with("ratio(");
        let e = if is_ratio { p.ratio()? } else { p.sum()? };
        if p.rest.is_empty() { Ok(e) } else { p.fail() }
    }
    /// The number it is, if it is one.
    pub fn number(&self) -> Option<i64> {
        if let Form::Number(n) = self.0 { Some(n) } else { None }
    }
    /// Whether it is `ratio(a, b)`, a quotient of two expressions that is no size: its value is the bits of a double.
    pub(crate) fn is_ratio(&self) -> bool {
        matches!(self.0, Form::Ratio(_))
    }
    /// The value, where the variables it names are known.
    pub fn value(&self, variables: &[Option<i64>]) -> Res<i64> {
        let both =
            |two: &[SizeExpr; 2]| -> Res<(i64, i64)> { Ok((two[0].value(variables)?, two[1].value(variables)?)) };
        let found = match &self.0 {
            Form::Number(n) => Some(*n),
            Form::Variable(v) => variables.get(*v).copied().flatten(),
            Form::Sum(all) => {
                let mut sum = Some(0i64);
                for e in all {
                    let x = e.value(variables)?;
                    sum = sum.and_then(|s| s.checked_add(x));
                }
                sum
            }
            Form::Product(all) => {
                let mut product = Some(1i64);
                for e in all {
                    let x = e.value(variables)?;
                    product = product.and_then(|s| s.checked_mul(x));
                }
                product
            }
            Form::Power(e, n) => e.value(variables)?.checked_pow(*n),
            Form::FloorDiv(two) => {
                let (a, b) = both(two)?;
                let down = a.checked_rem(b).is_some_and(|r| r != 0 && (r < 0) != (b < 0));
                a.checked_div(b).map(|q| q - i64::from(down))
            }
            Form::Mod(two) => {
                let (a, b) = both(two)?;
                a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
            }
            Form::Max(two) => both(two).map(|(a, b)| Some(a.max(b)))?,
            Form::Min(two) => both(two).map(|(a, b)| Some(a.min(b)))?,
            Form::Ratio(two) => both(two).map(|(a, b)| Some((a as f64 / b as f64).to_bits() as i64))?,
        };
        found.map_or_else(|| value_err("a symbolic size has no value: it overflows or divides by zero"), Ok)
    }
    /// (a, c) where the expression is `a v + c` of the one variable `v`, the others known.
    pub fn linear(&self, v: usize, variables: &[Option<i64>]) -> Option<(i64, i64)> {
        match &self.0 {
            Form::Variable(w) if *w == v => Some((1, 0)),
            Form::Sum(all) => all.iter().try_fold((0i64, 0i64), |(a, c), e| {
                let (b, d) = e.linear(v, variables)?;
                Some((a.checked_add(b)?, c.checked_add(d)?))
            }),
            Form::Product(all) => all.iter().try_fold((0i64, 1i64), |(a, c), e| match (e.linear(v, variables)?, a) {
                ((0, d), _) => Some((a.checked_mul(d)?, c.checked_mul(d)?)),
                ((b, d), 0) => Some((c.checked_mul(b)?, c.checked_mul(d)?)),
                _ => None,
            }),
            _ => self.value(variables).ok().map(|c| (0, c)),
        }
    }
    /// The variables it names.
    pub fn names(&self, out: &mut Vec<usize>) {
        match &self.0 {
            Form::Number(_) => (),
            Form::Variable(v) => out.push(*v),
            Form::Sum(all) | Form::Product(all) => all.iter().for_each(|e| e.names(out)),
            Form::Power(e, _) => e.names(out),
            Form::FloorDiv(two) | Form::Mod(two) | Form::Max(two) | Form::Min(two) | Form::Ratio(two) => {
                two.iter().for_each(|e| e.names(out))
            }
        }
    }
}

struct SizeParser<'a> {
    rest: &'a str,
    variables: &'a [String],
    depth: usize,
}
impl SizeParser<'_> {
    fn fail<T>(&self) -> Res<T> {
        value_err(format!("a symbolic size cannot be read at '{}'", self.rest.chars().take(20).collect::<String>()))
    }
    fn eat(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }
    fn word(&mut self) -> &str {
        let n = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(n);
        self.rest = rest.trim_start();
        word
    }
    fn sum(&mut self) -> Res<SizeExpr> {
        if self.depth == MAX_DEPTH {
            return self.fail();
        }
        self.depth += 1;
        let mut all = vec![];
        let mut negative = self.eat('-');
        loop {
            let e = self.product()?;
            all.push(if negative { SizeExpr(Form::Product(vec![SizeExpr(Form::Number(-1)), e])) } else { e });
            negative = match (self.eat('+'), self.eat('-')) {
                (true, also) => also,
                (false, true) => true,
                (false, false) => break,
            };
        }
        self.depth -= 1;
        Ok(if all.len() == 1 { all.swap_remove(0) } else { SizeExpr(Form::Sum(all)) })
    }
    fn ratio(&mut self) -> Res<SizeExpr> {
        self.word();
        self.eat('(');
        let a = self.sum()?;
        if !self.eat(',') {
            return self.fail();
        }
        let two = Box::new([a, self.sum()?]);
        if self.eat(')') { Ok(SizeExpr(Form::Ratio(two))) } else { self.fail() }
    }
    fn product(&mut self) -> Res<SizeExpr> {
        let mut all = vec![self.power()?];
        while self.eat('*') {
            all.push(self.power()?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { SizeExpr(Form::Product(all)) })
    }
    fn power(&mut self) -> Res<SizeExpr> {
        let base = self.factor()?;
        if !self.eat('^') {
            return Ok(base);
        }
        match self.word().parse() {
            Ok(n @ 1..=64) => Ok(SizeExpr(Form::Power(Box::new(base), n))),
            _ => self.fail(),
        }
    }
    fn factor(&mut self) -> Res<SizeExpr> {
        if self.eat('(') {
            let e = self.sum()?;
            return if self.eat(')') { Ok(e) } else { self.fail() };
        }
        let word = self.word().to_string();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().map_or_else(|_| self.fail(), |n| Ok(SizeExpr(Form::Number(n))));
        }
        if self.eat('(') {
            let a = self.sum()?;
            if !self.eat(',') {
                return self.fail();
            }
            let two = Box::new([a, self.sum()?]);
            return match (&*word, self.eat(')')) {
                ("floordiv", true) => Ok(SizeExpr(Form::FloorDiv(two))),
                ("mod", true) => Ok(SizeExpr(Form::Mod(two))),
                ("max", true) => Ok(SizeExpr(Form::Max(two))),
                ("min", true) => Ok(SizeExpr(Form::Min(two))),
                _ => self.fail(),
            };
        }
        match self.variables.iter().position(|v| *v == word) {
            Some(v) => Ok(SizeExpr(Form::Variable(v))),
            None => self.fail(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, b: i64, c: i64) -> Res<i64> {
        SizeExpr::parse(text, &["b".into(), "c".into()])?.value(&[Some(b), Some(c)])
    }
    #[test]
    fn expressions_have_values() {
        assert_eq!(at("2*b + floordiv(c, 3) - 1", 5, 8).unwrap(), 11);
        assert_eq!(at("- floordiv(- b, 2)", 5, 0).unwrap(), 3);
        assert_eq!(at("- c + b", 5, 8).unwrap(), -3);
        assert_eq!(at("b^3*c + -2", 2, 5).unwrap(), 38);
        assert_eq!(at("mod(-b, c) + mod(b, -c)", 5, 3).unwrap(), 0);
        assert_eq!(at("max(b, min(c, 7))*(b + 1)", 5, 9).unwrap(), 42);
    }
    #[test]
    fn a_ratio_is_a_double() {
        let half = |b| f64::from_bits(at("ratio(2*b - 1, 4)", b, 0).unwrap() as u64);
        assert_eq!((half(3), half(-1)), (1.25, -0.75));
        assert!(SizeExpr::parse("ratio(b, 2)", &["b".into()]).unwrap().is_ratio());
        for text in ["1 + ratio(b, 2)", "ratio(b)", "ratio(b, 2", "ratio(b, 2) + 1", "ratio(ratio(b, 2), 2)"] {
            assert!(at(text, 3, 2).is_err(), "{text}");
        }
    }
    #[test]
    fn what_has_no_value_is_an_error() {
        for text in ["floordiv(b, c)", "mod(b, c)", "b^64", "9223372036854775807 + b", "99999999999999999999"] {
            assert!(at(text, 3, 0).is_err(), "{text}");
        }
        assert!(at("floordiv(-9223372036854775807 - 1, c)", 0, -1).is_err());
    }
    #[test]
    fn what_is_no_expression_is_an_error() {
        for text in ["", "b +", "d", "b c", "max(b)", "pow(b, c)", "(b", "b^0", "b^-1", "2 *", "floordiv(b, 2"] {
            assert!(at(text, 3, 2).is_err(), "{text}");
        }
        assert!(at(&"(".repeat(100_000), 1, 1).is_err());
        assert!(at(&format!("{}b{}", "(".repeat(60), ")".repeat(60)), 1, 1).is_err());
        assert_eq!(at("b+".repeat(100_000).trim_end_matches('+'), 1, 1).unwrap(), 100_000);
    }
    #[test]
    fn linear_in_one_variable() {
        let e = |t: &str| SizeExpr::parse(t, &["b".into(), "c".into()]).unwrap();
        assert_eq!(e("2*b*c + 3 - b").linear(0, &[None, Some(5)]), Some((9, 3)));
        assert_eq!(e("floordiv(c, 2) + b").linear(0, &[None, Some(5)]), Some((1, 2)));
        assert_eq!(e("b*b").linear(0, &[None, None]), None);
        assert_eq!(e("b + c").linear(0, &[None, None]), None);
        assert_eq!(e("floordiv(b, 2)").linear(0, &[None, None]), None);
    }
}
