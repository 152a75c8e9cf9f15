//! Convolutions and reductions over windows.
use super::{Tensor, dot_general, emit, exactly, promote};
use crate::mistakes;
use ferrax_ir::ops::conv::{Conv, ConvDims};
use ferrax_ir::ops::reduce_window::{ReduceWindow, WindowKind};
use ferrax_ir::{Dims, Error};

/// The padding of the input.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Padding {
    /// Nothing: windows lie inside.
    #[default]
    Valid,
    /// As much that there are `size / stride` windows, rounded up.
    Same,
    /// (before, after) each spatial axis.
    Explicit(Vec<(i64, i64)>),
}
impl Padding {
    #[track_caller]
    pub(crate) fn widths(&self, sizes: &[usize], windows: &[usize], strides: &[usize]) -> Box<[(i64, i64)]> {
        match self {
            Padding::Valid => sizes.iter().map(|_| (0, 0)).collect(),
            Padding::Same => (0..sizes.len())
                .map(|k| {
                    let out = sizes[k].div_ceil(strides[k]);
                    let covered = out.saturating_sub(1).saturating_mul(strides[k]).saturating_add(windows[k]);
                    let total = i64::try_from(covered.saturating_sub(sizes[k])).unwrap_or(i64::MAX);
                    (total / 2, total - total / 2)
                })
                .collect(),
            Padding::Explicit(p) if p.len() == sizes.len() => p.clone().into(),
            Padding::Explicit(p) => mistakes::raise(Error::value(format!(
                "padding has {} entries for {} spatial dimensions",
                p.len(),
                sizes.len()
            ))),
        }
    }
}

/// The parameters of a convolution. Empty lists mean ones.
#[derive(Clone, Debug)]
pub struct ConvOptions {
    /// The distance between windows.
    pub strides: Vec<usize>,
    /// The padding of the input.
    pub padding: Padding,
    /// The distance between the input's elements: more than 1 for a transposed convolution.
    pub input_dilation: Vec<usize>,
    /// The distance between the kernel's elements.
    pub kernel_dilation: Vec<usize>,
    /// Groups of features that are convolved separately.
    pub feature_groups: usize,
    /// Groups of the batch that are convolved separately.
    pub batch_groups: usize,
    /// Axes of input, kernel and output: `N` batch, `C` feature; `O`, `I` of kernels; every other letter is spatial.
    pub layout: (&'static str, &'static str, &'static str),
}
impl Default for ConvOptions {
    fn default() -> ConvOptions {
        ConvOptions {
            strides: vec![],
            padding: Padding::Valid,
            input_dilation: vec![],
            kernel_dilation: vec![],
            feature_groups: 1,
            batch_groups: 1,
            layout: ("NCHW", "OIHW", "NCHW"),
        }
    }
}
impl ConvOptions {
    /// Two spatial axes, features last: `NHWC`, `HWIO`, `NHWC`.
    ///
    /// ```
    /// use ferrax::{ConvOptions, Tensor};
    /// let (x, w) = (Tensor::ones(&[1, 5, 5, 3]), Tensor::ones(&[3, 3, 3, 8]));
    /// assert_eq!(x.conv(&w, &ConvOptions::features_last()).shape(), [1, 3, 3, 8]);
    /// ```
    pub fn features_last() -> ConvOptions {
        ConvOptions { layout: ("NHWC", "HWIO", "NHWC"), ..ConvOptions::default() }
    }
}

#[track_caller]
fn spec(layout: &str, first: char, second: char, rank: usize, spatial: &[char]) -> Dims {
    let at = |c: char| match layout.chars().position(|d| d == c) {
        Some(k) => k,
        None => mistakes::raise(Error::value(format!("the layout {layout} has no axis {c}"))),
    };
    if layout.chars().count() != rank {
        mistakes::raise(Error::value(format!("the layout {layout} is not one of an array of rank {rank}")));
    }
    [first, second].iter().chain(spatial).map(|c| at(*c)).collect()
}
/// A size whose elements are at distance `by`.
fn wide(size: usize, by: usize) -> usize {
    if size == 0 { 0 } else { (size - 1).saturating_mul(by).saturating_add(1) }
}
/// An entry for each of `n` axes, none of them 0; an empty list means ones.
#[track_caller]
fn each(name: &str, v: &[usize], n: usize) -> Dims {
    if v.is_empty() {
        return Dims::new(&vec![1; n]);
    }
    if v.len() != n || v.contains(&0) {
        mistakes::raise(Error::value(format!("{name} are {n} numbers of 1 or more, or none, got {v:?}")));
    }
    Dims::new(v)
}

impl Tensor {
    /// The convolution (cross-correlation, as everywhere in learning) with a kernel.
    ///
    /// ```
    /// use ferrax::{ConvOptions, Padding, Tensor};
    /// let (x, w) = (Tensor::ones(&[1, 1, 4, 4]), Tensor::ones(&[2, 1, 3, 3]));
    /// assert_eq!(x.conv(&w, &ConvOptions::default()).shape(), [1, 2, 2, 2]);
    /// let same = ConvOptions { padding: Padding::Same, strides: vec![2, 2], ..ConvOptions::default() };
    /// assert_eq!(x.conv(&w, &same).shape(), [1, 2, 2, 2]);
    /// ```
    ///
    /// # Panics
    /// For a layout, strides or features that do not fit.
    #[track_caller]
    pub fn conv(&self, kernel: &Tensor, o: &ConvOptions) -> Tensor {
        let [x, w] = exactly(promote(&[self, kernel]));
        let spatial: Vec<char> = o.layout.0.chars().filter(|c| *c != 'N' && *c != 'C').collect();
        let n = spatial.len();
        let lhs = spec(o.layout.0, 'N', 'C', x.rank(), &spatial);
        let rhs = spec(o.layout.1, 'O', 'I', w.rank(), &spatial);
        let out = spec(o.layout.2, 'N', 'C', x.rank(), &spatial);
        let (strides, near) = (each("strides", &o.strides, n), each("input dilations", &o.input_dilation, n));
        let far = each("kernel dilations", &o.kernel_dilation, n);
        let sizes: Vec<usize> = (0..n).map(|k| wide(x.shape()[lhs[k + 2]], near[k])).collect();
        let windows: Vec<usize> = (0..n).map(|k| wide(w.shape()[rhs[k + 2]], far[k])).collect();
        let op = Conv {
            batch_group_count: o.batch_groups,
            dimension_numbers: Box::new(ConvDims { lhs_spec: lhs, rhs_spec: rhs, out_spec: out }),
            feature_group_count: o.feature_groups,
            lhs_dilation: near,
            padding: o.padding.widths(&sizes, &windows, &strides),
            precision: Default::default(),
            preferred_element_type: None,
            rhs_dilation: far,
            window_strides: strides,
        };
        emit(op, &[&x, &w])
    }
    /// The convolution that is the gradient of one with these strides: the input is spaced out by them, and convolved. `Padding::Same` gives
    /// `size * stride` positions, `Valid` all that see an element; explicit widths are those of the spaced input.
    ///
    /// ```
    /// use ferrax::{ConvOptions, Padding, Tensor};
    /// let (x, w) = (Tensor::ones(&[1, 1, 3]), Tensor::ones(&[1, 1, 2]));
    /// let o = ConvOptions { strides: vec![2], padding: Padding::Valid, layout: ("NCH", "OIH", "NCH"), ..ConvOptions::default() };
    /// assert_eq!(x.conv_transpose(&w, &o).shape(), [1, 1, 6]);
    /// ```
    ///
    /// # Panics
    /// As [`Tensor::conv`].
    #[track_caller]
    pub fn conv_transpose(&self, kernel: &Tensor, o: &ConvOptions) -> Tensor {
        let spatial: Vec<char> = o.layout.0.chars().filter(|c| *c != 'N' && *c != 'C').collect();
        let n = spatial.len();
        let rhs = spec(o.layout.1, 'O', 'I', kernel.rank(), &spatial);
        let (strides, far) = (each("strides", &o.strides, n), each("kernel dilations", &o.kernel_dilation, n));
        let widths = |k: usize| {
            let window = wide(kernel.shape()[rhs[k + 2]], far[k]) as i64;
            let s = strides[k] as i64;
            let (low, total) = match o.padding {
                Padding::Same if s > window - 1 => (window - 1, window + s - 2),
                Padding::Same => ((window + s - 1) / 2, window + s - 2),
                _ => (window - 1, window + s - 2 + (window - s).max(0)),
            };
            (low, total - low)
        };
        let padding = match &o.padding {
            Padding::Explicit(_) => o.padding.clone(),
            _ => Padding::Explicit((0..n).map(widths).collect()),
        };
        let spaced = ConvOptions { strides: vec![], input_dilation: strides.to_vec(), padding, ..o.clone() };
        self.conv(kernel, &spaced)
    }
    /// The windows of a convolution with kernels of this shape, as features: for each feature of
    /// the input as many as the kernel has elements.
    ///
    /// ```
    /// use ferrax::{ConvOptions, Tensor};
    /// let x = Tensor::from([[[1.0f32, 2.0, 3.0]]]);
    /// let o = ConvOptions { layout: ("NCH", "OIH", "NCH"), ..ConvOptions::default() };
    /// assert_eq!(x.conv_patches(&[2], &o).to_vec::<f32>().unwrap(), [1.0, 2.0, 2.0, 3.0]);
    /// ```
    ///
    /// # Panics
    /// As [`Tensor::conv`].
    #[track_caller]
    pub fn conv_patches(&self, kernel: &[usize], o: &ConvOptions) -> Tensor {
        let spatial: Vec<char> = o.layout.0.chars().filter(|c| *c != 'N' && *c != 'C').collect();
        let features = self.shape()[spec(o.layout.0, 'N', 'C', self.rank(), &spatial)[1]];
        let size: usize = kernel.iter().product();
        let shape: Vec<usize> = [&[features * size, 1], kernel].concat();
        let unit = Tensor::eye(size, size).astype(self.dtype()).broadcast_to(&[features, size, size]).reshape(&shape);
        // from output, input, spatial axes to where the layout has them
        let order = spec(o.layout.1, 'O', 'I', shape.len(), &spatial);
        let to = |axis: usize| order.iter().position(|k| *k == axis).unwrap_or(axis) as i64;
        let unit = unit.permute(&(0..shape.len()).map(to).collect::<Vec<_>>());
        self.conv(&unit, &ConvOptions { feature_groups: features, ..o.clone() })
    }
    /// The convolution with a kernel of its own at each position of the result (locally connected): the kernel has an output feature axis, one
    /// of `features of the input * elements of the window`, and the result's spatial axes, where the layout says.
    ///
    /// ```
    /// use ferrax::{ConvOptions, Tensor};
    /// let (x, w) = (Tensor::ones(&[1, 1, 3]), Tensor::from([[[0.0f32, 1.0], [2.0, 3.0]]]));
    /// let o = ConvOptions { layout: ("NCH", "OIH", "NCH"), ..ConvOptions::default() };
    /// assert_eq!(x.conv_local(&w, &[2], &o).to_vec::<f32>().unwrap(), [2.0, 4.0]);
    /// ```
    ///
    /// # Panics
    /// As [`Tensor::conv`], and for a kernel of another shape.
    #[track_caller]
    pub fn conv_local(&self, kernel: &Tensor, window: &[usize], o: &ConvOptions) -> Tensor {
        let patches = self.conv_patches(window, o);
        let spatial: Vec<char> = o.layout.0.chars().filter(|c| *c != 'N' && *c != 'C').collect();
        let (n, rank) = (spatial.len(), self.rank());
        let out = spec(o.layout.2, 'N', 'C', rank, &spatial);
        let rhs = spec(o.layout.1, 'O', 'I', kernel.rank(), &spatial);
        let y = dot_general(&patches, kernel, (&[out[1]], &[rhs[1]]), (&out[2..], &rhs[2..]));
        // (spatial.., N, O) to where the layout has them
        let mut order = vec![0; rank];
        let found = [n, n + 1].into_iter().chain(0..n);
        out.iter().zip(found).for_each(|(axis, from)| order[*axis] = from as i64);
        y.permute(&order)
    }
    #[track_caller]
    fn windows(&self, kind: WindowKind, window: &[usize], strides: &[usize], padding: &Padding) -> Tensor {
        let n = self.rank();
        let (window, strides) = (each("sizes of a window", window, n), each("strides", strides, n));
        let op = ReduceWindow {
            kind,
            base_dilation: each("dilations", &[], n),
            padding: padding.widths(self.shape(), &window, &strides),
            window_dilation: each("dilations", &[], n),
            window_dimensions: window,
            window_strides: strides,
        };
        emit(op, &[self])
    }
    /// Sums over windows; `window` and `strides` (empty: ones) have an entry for each axis.
    ///
    /// ```
    /// use ferrax::{Padding, Tensor};
    /// let x = Tensor::from([1.0f32, 3.0, 2.0, 5.0]);
    /// assert_eq!(x.sum_windows(&[2], &[], &Padding::Valid).to_vec::<f32>()?, [4.0, 5.0, 7.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn sum_windows(&self, window: &[usize], strides: &[usize], padding: &Padding) -> Tensor {
        self.windows(WindowKind::Sum, window, strides, padding)
    }
    /// Maxima over windows: max pooling.
    ///
    /// ```
    /// use ferrax::{Padding, Tensor};
    /// let x = Tensor::from([1.0f32, 3.0, 2.0, 5.0]);
    /// assert_eq!(x.max_windows(&[2], &[2], &Padding::Valid).to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn max_windows(&self, window: &[usize], strides: &[usize], padding: &Padding) -> Tensor {
        self.windows(WindowKind::Max, window, strides, padding)
    }
    /// Minima over windows.
    ///
    /// ```
    /// use ferrax::{Padding, Tensor};
    /// let x = Tensor::from([1.0f32, 3.0, 2.0, 5.0]);
    /// assert_eq!(x.min_windows(&[2], &[2], &Padding::Valid).to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn min_windows(&self, window: &[usize], strides: &[usize], padding: &Padding) -> Tensor {
        self.windows(WindowKind::Min, window, strides, padding)
    }
    /// Means over windows, of the elements that lie inside: average pooling.
    ///
    /// ```
    /// use ferrax::{Padding, Tensor};
    /// let x = Tensor::from([1.0f32, 3.0, 2.0, 5.0]);
    /// assert_eq!(x.mean_windows(&[2], &[2], &Padding::Valid).to_vec::<f32>()?, [2.0, 3.5]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn mean_windows(&self, window: &[usize], strides: &[usize], padding: &Padding) -> Tensor {
        let n = self.ones_like().sum_windows(window, strides, padding);
        self.sum_windows(window, strides, padding) / n
    }
}
