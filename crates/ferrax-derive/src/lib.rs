//! `#[derive(Tree)]` for structs and enums of tensors.
//!
//! Every field is a tree, but for those marked `#[tree(fixed)]`, which are cloned, and are part of the structure by their `Debug` text. Parameters of
//! the type that fields name are trees, too, or `Clone` and `Debug` where only fixed fields name them.
//!
//! INVARIANT: no dependencies. The input is read token by token, for a parser of all of Rust would be most of a small program's build.
#![forbid(unsafe_code)]
use proc_macro::{Delimiter, Group, TokenStream, TokenTree};
use std::iter::Peekable;

type Tokens = Peekable<proc_macro::token_stream::IntoIter>;

struct FieldRead {
    /// A name, or a number.
    name: String,
    fixed: bool,
    /// Its type, as text.
    kind: String,
}
struct VariantRead {
    /// `Self`, or `Self::Name`.
    path: String,
    fields: Vec<FieldRead>,
}

/// Implements `ferrax::Tree`.
#[proc_macro_derive(Tree, attributes(tree))]
pub fn derive_tree(input: TokenStream) -> TokenStream {
    match expand(input) {
        Ok(code) => code.parse().unwrap_or_else(|e| error(&format!("derive(Tree) made code that does not parse: {e}"))),
        Err(m) => error(&m),
    }
}
fn error(m: &str) -> TokenStream {
    format!("::core::compile_error!({m:?});").parse().unwrap_or_default()
}

/// Attributes and visibility before an item; whether one is `#[tree(fixed)]`.
fn skip_attributes(t: &mut Tokens) -> Result<bool, String> {
    let mut fixed = false;
    loop {
        match t.peek() {
            Some(TokenTree::Punct(p)) if p.as_char() == '#' => {
                t.next();
                if let Some(TokenTree::Group(g)) = t.next() {
                    let text = g.stream().to_string().replace(' ', "");
                    match text.strip_prefix("tree(").and_then(|s| s.strip_suffix(')')) {
                        Some("fixed") => fixed = true,
                        Some(other) => return Err(format!("#[tree({other})] is unknown; there is #[tree(fixed)]")),
                        None => (),
                    }
                }
            }
            Some(TokenTree::Ident(i)) if i.to_string() == "pub" => {
                t.next();
                if matches!(t.peek(), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis) {
                    t.next();
                }
            }
            _ => return Ok(fixed),
        }
    }
}
/// Tokens up to a comma outside of angle brackets; whether there were any.
fn until_comma(t: &mut Tokens) -> Vec<TokenTree> {
    let (mut depth, mut arrow) = (0, false);
    let mut out = vec![];
    for token in t.by_ref() {
        if let TokenTree::Punct(p) = &token {
            match p.as_char() {
                ',' if depth == 0 => break,
                '<' => depth += 1,
                '>' if !arrow => depth -= 1,
                _ => (),
            }
            arrow = p.as_char() == '-';
        }
        out.push(token);
    }
    out
}
fn fields(g: &Group) -> Result<Vec<FieldRead>, String> {
    let mut t = g.stream().into_iter().peekable();
    let mut out = vec![];
    while t.peek().is_some() {
        let fixed = skip_attributes(&mut t)?;
        let name = match g.delimiter() {
            Delimiter::Brace => match t.next() {
                Some(TokenTree::Ident(i)) => i.to_string(),
                _ => return Err("derive(Tree) expected a field's name".into()),
            },
            _ => out.len().to_string(),
        };
        let kind = until_comma(&mut t);
        if kind.is_empty() {
            break;
        }
        out.push(FieldRead { name, fixed, kind: text(kind) });
    }
    Ok(out)
}
fn variants(g: &Group) -> Result<Vec<VariantRead>, String> {
    let mut t = g.stream().into_iter().peekable();
    let mut out = vec![];
    while t.peek().is_some() {
        skip_attributes(&mut t)?;
        let Some(TokenTree::Ident(name)) = t.next() else { break };
        let fields = match t.peek() {
            Some(TokenTree::Group(g)) => fields(g)?,
            _ => vec![],
        };
        // a discriminant, whose `<` is not a bracket
        for token in t.by_ref() {
            if matches!(&token, TokenTree::Punct(p) if p.as_char() == ',') {
                break;
            }
        }
        out.push(VariantRead { path: format!("Self::{name}"), fields });
    }
    Ok(out)
}
fn text(t: impl IntoIterator<Item = TokenTree>) -> String {
    t.into_iter().collect::<TokenStream>().to_string()
}
/// Whether a type's text names a parameter.
fn mentions(kind: &str, name: &str) -> bool {
    kind.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|w| w == name)
}
/// (parameters as `impl` takes them, arguments as the type takes them, names of those that are types)
fn generics(t: &mut Tokens) -> (String, String, Vec<String>) {
    if !matches!(t.peek(), Some(TokenTree::Punct(p)) if p.as_char() == '<') {
        return Default::default();
    }
    t.next();
    let (mut depth, mut inner) = (1, vec![]);
    for token in t.by_ref() {
        if let TokenTree::Punct(p) = &token {
            depth += match p.as_char() {
                '<' => 1,
                '>' => -1,
                _ => 0,
            };
            if depth == 0 {
                break;
            }
        }
        inner.push(token);
    }
    let (mut params, mut args, mut types) = (vec![], vec![], vec![]);
    let mut all = inner.into_iter().collect::<TokenStream>().into_iter().peekable();
    while all.peek().is_some() {
        let p = until_comma(&mut all);
        let default = p.iter().position(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == '='));
        let declared = text(p[..default.unwrap_or(p.len())].iter().cloned());
        let name = match &p[..] {
            [TokenTree::Punct(_), TokenTree::Ident(life), ..] => format!("'{life}"),
            [TokenTree::Ident(c), TokenTree::Ident(name), ..] if c.to_string() == "const" => name.to_string(),
            [TokenTree::Ident(name), ..] => {
                types.push(name.to_string());
                name.to_string()
            }
            _ => continue,
        };
        params.push(declared);
        args.push(name);
    }
    let angle = |v: Vec<String>| format!("<{}>", v.join(", "));
    (angle(params), angle(args), types)
}

/// The trait bounds of parameters, and those that the type declares.
fn bounds(all: &[VariantRead], types: &[String], given: Vec<TokenTree>) -> String {
    let fields = || all.iter().flat_map(|v| &v.fields);
    let mut out = vec![];
    for name in types {
        let of = |fixed: bool| fields().any(|f| f.fixed == fixed && mentions(&f.kind, name));
        if of(false) {
            out.push(format!("{name}: ::ferrax::Tree"));
        }
        if of(true) {
            out.push(format!("{name}: ::core::clone::Clone + ::core::fmt::Debug"));
        }
    }
    if !given.is_empty() {
        out.push(text(given));
    }
    out.join(", ")
}
fn expand(input: TokenStream) -> Result<String, String> {
    let mut t = input.into_iter().peekable();
    skip_attributes(&mut t)?;
    let kind = t.next().map(|k| k.to_string()).unwrap_or_default();
    let Some(TokenTree::Ident(name)) = t.next() else { return Err("derive(Tree) expected a type's name".into()) };
    let (params, args, types) = generics(&mut t);
    let (mut body, mut given, mut within) = (None, vec![], false);
    for token in t {
        match token {
            // a bound may have parentheses of its own: `where F: Fn(f32) -> f32`
            TokenTree::Group(g) if body.is_none() && g.delimiter() == Delimiter::Brace => body = Some(g),
            TokenTree::Group(g) if body.is_none() && g.delimiter() == Delimiter::Parenthesis && !within => {
                body = Some(g)
            }
            TokenTree::Punct(p) if p.as_char() == ';' => (),
            TokenTree::Ident(i) if i.to_string() == "where" => within = true,
            token => given.push(token),
        }
    }
    let all = match (&*kind, body) {
        ("struct", Some(g)) => vec![VariantRead { path: "Self".into(), fields: fields(&g)? }],
        ("struct", None) => vec![VariantRead { path: "Self".into(), fields: vec![] }],
        ("enum", Some(g)) => variants(&g)?,
        _ => return Err("derive(Tree) is for structs and enums".into()),
    };
    let bounds = bounds(&all, &types, given);
    let (mut leaves, mut rebuild, mut outline) = (String::new(), String::new(), String::new());
    for v in &all {
        // by number: a field may have any name, those of the parameters too
        let bind: Vec<String> = v.fields.iter().enumerate().map(|(i, f)| format!("{}: __field_{i}", f.name)).collect();
        let pattern = format!("{} {{ {} }}", v.path, bind.join(", "));
        let (mut l, mut r, mut o) = (String::new(), String::new(), String::new());
        if v.path != "Self" {
            o += &format!("__out.fixed({:?});", v.path.trim_start_matches("Self::"));
        }
        for (i, f) in v.fields.iter().enumerate() {
            let (n, x) = (&f.name, format!("__field_{i}"));
            let key = n.trim_start_matches("r#");
            if f.fixed {
                l += &format!("let _ = {x};");
                r += &format!("{n}: ::core::clone::Clone::clone({x}),");
                o += &format!("__out.enter(\".{key}\", |__out| __out.fixed({x}));");
            } else {
                l += &format!("::ferrax::Tree::leaves({x}, __f);");
                r += &format!("{n}: ::ferrax::Tree::rebuild({x}, __f),");
                o += &format!("__out.enter(\".{key}\", |__out| ::ferrax::Tree::outline({x}, __out));");
            }
        }
        leaves += &format!("{pattern} => {{ {l} }}");
        rebuild += &format!("{pattern} => {} {{ {r} }},", v.path);
        outline += &format!("{pattern} => {{ {o} }}");
    }
    let this = if all.is_empty() { "*self" } else { "self" };
    Ok(format!(
        "#[automatically_derived] impl{params} ::ferrax::Tree for {name}{args} where {bounds} {{
            fn leaves(&self, __f: &mut dyn FnMut(&::ferrax::Tensor)) {{ let _ = &__f; match {this} {{ {leaves} }} }}
            fn rebuild(&self, __f: &mut dyn FnMut(&::ferrax::Tensor) -> ::ferrax::Tensor) -> Self {{ let _ = &__f; match {this} {{ {rebuild} }} }}
            fn outline(&self, __out: &mut ::ferrax::Outline) {{ let _ = &__out; match {this} {{ {outline} }} }}
        }}"
    ))
}
