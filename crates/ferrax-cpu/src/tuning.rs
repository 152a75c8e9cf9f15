//! The target of compiled plans: instruction tier, and all thresholds between strategies.
use crate::tier::Tier;
use ferrax_linalg::LinalgTuning;

/// The instructions of the machine, and the thresholds.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub tier: Tier,
    pub tuning: Tuning,
}
impl From<Tier> for Target {
    fn from(tier: Tier) -> Target {
        Target { tier, tuning: Tuning::DEFAULT }
    }
}

/// Thresholds by component. Tests override single ones:
/// `Tuning { sort: SortTuning { radix_from: 2, ..SortTuning::DEFAULT }, ..Tuning::DEFAULT }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tuning {
    pub kernels: KernelTuning,
    pub row_groups: RowGroupTuning,
    pub scalars: ScalarTuning,
    pub conv: ConvTuning,
    pub cumulative: CumulativeTuning,
    pub dot: DotTuning,
    pub fft: FftTuning,
    pub gather: GatherTuning,
    pub linalg: LinalgTuning,
    pub scatter: ScatterTuning,
    pub sort: SortTuning,
    pub top_k: TopKTuning,
}
impl Tuning {
    pub const DEFAULT: Tuning = Tuning {
        kernels: KernelTuning::DEFAULT,
        row_groups: RowGroupTuning::DEFAULT,
        scalars: ScalarTuning::DEFAULT,
        conv: ConvTuning::DEFAULT,
        cumulative: CumulativeTuning::DEFAULT,
        dot: DotTuning::DEFAULT,
        fft: FftTuning::DEFAULT,
        gather: GatherTuning::DEFAULT,
        linalg: LinalgTuning::DEFAULT,
        scatter: ScatterTuning::DEFAULT,
        sort: SortTuning::DEFAULT,
        top_k: TopKTuning::DEFAULT,
    };
}

/// Kernels by themselves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KernelTuning {
    /// Positions of a tile, at least and at most, and the bytes of its registers: most of the nearest cache.
    pub min_tile: usize,
    pub max_tile: usize,
    pub max_tile_bytes: usize,
    /// Rows from this length on are tiles of their own, whose operands are used in place; shorter ones are copied into tiles of many.
    pub min_row: usize,
    /// The same where native code goes through the rows by itself.
    pub min_native_row: usize,
    /// The same where it is known that all of a program becomes such code.
    pub min_short_row: usize,
    /// The same where a mask makes a row a part of one vector.
    pub min_masked_row: usize,
    /// Elements of a strided row that so many rows share, up to which they are copied once: a
    /// register holds them.
    pub max_shared_row: usize,
    pub min_rows_sharing: usize,
    /// Bytes of a row from which native code uses the longest vectors.
    pub min_long_vector_bytes: usize,
    /// Loads that may precede the calls: each holds a register until it is read. Those of 8- and 16-bit elements count half.
    pub max_early_loads: usize,
    /// The guard-free tiles of a kernel, and the nodes of all of them, beyond which it is not
    /// split.
    pub max_pieces: usize,
    pub max_nodes_of_pieces: usize,
    /// Elements of a guard-free tile, on the average, below which guards cost less than tiles.
    pub min_piece_elements: usize,
    /// The longest last axis whose positions become separate outputs, which are stored interleaved.
    pub max_interleaved: usize,
    /// Elements between two positions of the last axis from which these share no line of the nearest cache by the time the next row comes: such kernels
    /// go through their grid in blocks of this side.
    pub min_crossed_stride: i64,
    pub block_side: usize,
    /// The number of results from which short reductions are unrolled, and the number of nodes up
    /// to which they are.
    pub min_unrolled_results: usize,
    pub max_unrolled_nodes: usize,
    /// Columns that are reduced side by side.
    pub max_reduced_columns: usize,
    /// Elements that devices combine at a time in a collective: they fit the nearest cache, and are
    /// the least that one device does for the others.
    pub combined_elements: usize,
    /// Blocks of a result, and estimated nanoseconds, from which several threads make it.
    pub min_split_blocks: usize,
    pub min_split_nanos: f64,
}
impl KernelTuning {
    pub const DEFAULT: KernelTuning = KernelTuning {
        min_tile: 128,
        max_tile: 1024,
        max_tile_bytes: 24 << 10,
        min_row: 48,
        min_native_row: 32,
        min_short_row: 8,
        min_masked_row: 3,
        max_shared_row: 128,
        min_rows_sharing: 8,
        min_long_vector_bytes: 128,
        max_early_loads: 8,
        max_pieces: 64,
        max_nodes_of_pieces: 1 << 13,
        min_piece_elements: 32,
        max_interleaved: 4,
        min_crossed_stride: 64,
        block_side: 32,
        min_unrolled_results: 256,
        max_unrolled_nodes: 256,
        max_reduced_columns: 256,
        combined_elements: 512,
        min_split_blocks: 4,
        min_split_nanos: 60_000.0,
    };
    /// Whether several threads share each of a few results of a reduction, which has so many
    /// blocks.
    pub fn splits_results(&self, results: usize, blocks: usize, nanos: f64, threads: usize) -> bool {
        threads > 1 && results < 2 * threads && blocks >= self.min_split_blocks && nanos > self.min_split_nanos
    }
}

/// Native code of kernels and scalar loops.
pub struct NativeTuning {
    /// Work, in nanoseconds, after which code is made: that takes some 10 to 50 us. `native::set_min_nanos` overrides it. And how many times as much it takes for a nest of
    /// a reduction, which takes 100 to 500 us.
    pub min_nanos: u64,
    pub nests_over_programs: u64,
    /// Vectors of a segment's frame, which is on the stack, without a stack probe; and values of
    /// its graph.
    pub max_spills: u32,
    pub max_values: usize,
}
impl NativeTuning {
    pub const DEFAULT: NativeTuning =
        NativeTuning { min_nanos: 50_000, nests_over_programs: 8, max_spills: 100, max_values: 4000 };
}

/// Kernels and gathers over the same rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RowGroupTuning {
    /// Bytes that a chunk should touch at most: half of a small second-level cache.
    pub max_chunk_bytes: usize,
    /// Bytes of a plan's slots, and of a group's arrays, below which everything stays in the cache.
    pub min_plan_bytes: usize,
    /// Kernels and gathers of one group.
    pub max_members: usize,
    /// Bytes that an iteration of a chunk should touch where a loop runs by rows: it stays in the nearer caches, and is worth the calls.
    pub near_loop_bytes: usize,
    pub min_loop_bytes: usize,
}
impl RowGroupTuning {
    pub const DEFAULT: RowGroupTuning = RowGroupTuning {
        max_chunk_bytes: 192 << 10,
        min_plan_bytes: 512 << 10,
        max_members: 24,
        near_loop_bytes: 32 << 10,
        min_loop_bytes: 8 << 10,
    };
}

/// Kernels and loops in scalar registers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScalarTuning {
    /// Elements of a slot that a loop keeps in registers, and those of products in it.
    pub max_slot_elements: usize,
    /// The same, outside of loops that are scalar throughout; and multiplications of a product there.
    pub max_block_elements: usize,
    pub max_block_product: usize,
    /// Operations of all branches of a choice up to which all are evaluated: in a loop that becomes
    /// scalar thereby, and in a block.
    pub max_branch_operations: [usize; 2],
    /// Nanoseconds of an operation: interpreted, and as native code, whose compilation takes time.
    pub nanos: [f64; 2],
    /// Operations of a block from which native code is worth the way there.
    pub min_native_operations: usize,
    /// Operations of a loop's body beyond which tiles are the better way, whatever they cost.
    pub max_loop_operations: usize,
    /// Values of a nest as it is written down, beyond which its steps run one by one.
    pub max_nest_values: usize,
    /// Elements of a guard-free tile of a kernel in a nest, on the average, below which the steps run one by one; operations of a loop in it whose
    /// iterations run one by one, and elements that it gathers or scatters at computed positions.
    pub min_nest_piece: usize,
    pub max_scalar_operations: usize,
    pub max_scattered: usize,
    /// Elements of a slot that such a nest keeps in registers; elements of a step up to which it is part of one; elements of carries that are
    /// copied after each iteration; scalar iterations of a loop; and bytes of results of called functions in a loop (kernels inline these).
    pub max_nest_registers: usize,
    pub max_nest_elements: usize,
    pub max_nest_copies: usize,
    pub max_scalar_row: usize,
    pub max_called_bytes: usize,
    /// Iterations of a loop from which on functions that are calls are called once for all, and bytes of working memory for their operands and results.
    pub min_called_row: usize,
    pub max_row_bytes: usize,
    /// Operations of a reduction beyond which sixteen elements at a time are not written out, for many results side by side.
    pub max_column_operations: usize,
    /// Blocks of a reduction, each of which is a loop of its own in a nest.
    pub max_reduction_blocks: usize,
    /// Elements of a group of results, about, and results at most, in a nest of one reduction; and groups that threads may share, at least, where there are as
    /// many results.
    pub group_elements: usize,
    pub max_group_rows: usize,
    pub min_groups: usize,
    /// Elements of a reduction that are written out one by one; and elements of one that is no sum in vectors.
    pub max_unrolled_reduction: usize,
    pub max_scalar_reduction: usize,
    /// Loops and stores between two loops that become one.
    pub max_statements_between: usize,
}
impl ScalarTuning {
    pub const DEFAULT: ScalarTuning = ScalarTuning {
        max_slot_elements: 64,
        max_block_elements: 16,
        max_block_product: 64,
        max_branch_operations: [256, 64],
        nanos: [1.5, 0.5],
        min_native_operations: 24,
        max_loop_operations: 20_000,
        max_nest_values: 8_000,
        min_nest_piece: 3,
        max_scalar_operations: 2048,
        max_scattered: 1024,
        max_nest_registers: 8,
        max_nest_elements: 1 << 16,
        max_nest_copies: 3 << 10,
        max_scalar_row: 32,
        max_called_bytes: 256,
        min_called_row: 4,
        max_row_bytes: 16 << 10,
        max_column_operations: 24,
        max_reduction_blocks: 8,
        group_elements: 1 << 14,
        max_group_rows: 256,
        min_groups: 8,
        max_unrolled_reduction: 4,
        max_scalar_reduction: 1024,
        max_statements_between: 12,
    };
}

/// Convolutions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ConvTuning {
    /// Windows along a line or plane from which copying it once is worth it.
    pub min_windows_on_line: usize,
    /// Bytes of a copied line, or of copied parts of planes, that stay near while they are used.
    pub max_line_bytes: usize,
    /// Bytes of cells of groups that are copied at a time; and at most.
    pub near_cell_bytes: usize,
    pub max_cell_bytes: usize,
    /// Units of work that keep some threads busy.
    pub min_units: usize,
}
impl ConvTuning {
    pub const DEFAULT: ConvTuning = ConvTuning {
        min_windows_on_line: 12,
        max_line_bytes: 1 << 17,
        near_cell_bytes: 1 << 18,
        max_cell_bytes: 1 << 23,
        min_units: 8,
    };
}

/// Running sums, products and extremes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CumulativeTuning {
    /// Neighbouring columns up to which each goes down by itself, several side by side in registers: block functions of so few take longer.
    pub max_columns_in_registers: usize,
}
impl CumulativeTuning {
    pub const DEFAULT: CumulativeTuning = CumulativeTuning { max_columns_in_registers: 32 };
}

/// Matrix products.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DotTuning {
    /// Products of up to this many multiplications are done by loops, which sum in sequence, those of a matrix and a vector, too.
    pub max_loop_work: usize,
    /// The same where the machine has no panels.
    pub max_loop_work_without_panels: usize,
    /// Estimated nanoseconds from which several threads do one product of the library.
    pub min_strip_nanos: f64,
    /// Rows and columns from which the library's sums do not depend on an operand's layout.
    pub min_library_side: usize,
}
impl DotTuning {
    pub const DEFAULT: DotTuning = DotTuning {
        max_loop_work: 512,
        max_loop_work_without_panels: 8192,
        min_strip_nanos: 20_000.0,
        min_library_side: 32,
    };
}

/// Fourier transforms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FftTuning {
    /// Rows from this length on are taken as matrices.
    pub min_matrix_length: usize,
    /// The greatest quotient of the two factors of such a length.
    pub max_aspect: usize,
}
impl FftTuning {
    pub const DEFAULT: FftTuning = FftTuning { min_matrix_length: 1 << 16, max_aspect: 16 };
}

/// Gathers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GatherTuning {
    /// Positions from which it pays to copy the same element of all their windows at once.
    pub min_positions_across: usize,
}
impl GatherTuning {
    pub const DEFAULT: GatherTuning = GatherTuning { min_positions_across: 16 };
}

/// Scatters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScatterTuning {
    /// Updates of each element of the operand from which arrays of their own pay for threads that divide the updates.
    pub min_updates_per_element: usize,
    /// Nanoseconds from which threads divide the operand: each looks at all positions.
    pub min_shared_nanos: f64,
}
impl ScatterTuning {
    pub const DEFAULT: ScatterTuning = ScatterTuning { min_updates_per_element: 4, min_shared_nanos: 30_000.0 };
}

/// Lengths of rows at which the sorting method changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SortTuning {
    /// From here on by digits; shorter rows by comparing.
    pub radix_from: usize,
    /// From here on, and below the next, by digits of 11 bits, else of 8: two thousand places to write at are too many for few words, and for more
    /// than the caches hold.
    pub wide_digits_from: usize,
    pub wide_digits_below: usize,
    /// Above it threads share a row, where there are fewer rows than threads.
    pub shared_above: usize,
}
impl SortTuning {
    pub const DEFAULT: SortTuning =
        SortTuning { radix_from: 256, wide_digits_from: 1 << 12, wide_digits_below: 1 << 20, shared_above: 1 << 17 };
}

/// The greatest of rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TopKTuning {
    /// Room for candidates beside the best k, at least.
    pub min_spare: usize,
}
impl TopKTuning {
    pub const DEFAULT: TopKTuning = TopKTuning { min_spare: 128 };
}
