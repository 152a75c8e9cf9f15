//! The thresholds between the strategies for a batch of matrices.

/// Decompositions and systems.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinalgTuning {
    /// A batch with fewer remaining matrices handles each separately.
    pub min_batch: usize,
    /// Elements of the largest operand with which several matrices still fit into the nearer caches.
    pub max_elements_in_lanes: usize,
    /// The largest matrices for which several in lanes are quicker than each by itself, whose rows the compiler vectorizes; and the most
    /// right-hand sides of such systems with the matrix on the left.
    pub max_cholesky_in_lanes: usize,
    pub max_lu_in_lanes: usize,
    pub max_left_system_in_lanes: usize,
    /// From here on matrices are decomposed by blocks: factors and systems, real Cholesky factors, eigenvalues and singular values, and real systems with half
    /// as many right-hand sides, which fill vectors.
    pub min_blocked: usize,
    pub min_blocked_cholesky: usize,
    pub min_blocked_spectral: usize,
    pub min_blocked_system: usize,
    /// The greatest ratio of the sides of a matrix up to which singular values alone are computed without a triangular factor.
    pub max_aspect_of_values: usize,
    /// Rows of the rest of a symmetric matrix, and elements of the rest of a general one, from
    /// which products with vectors are cut into pieces, which threads share. The order of pieces
    /// determines bits, so tests do not override these.
    pub min_rows_in_pieces: usize,
    pub min_elements_in_pieces: usize,
}
impl LinalgTuning {
    pub const DEFAULT: LinalgTuning = LinalgTuning {
        min_batch: 3,
        max_elements_in_lanes: 4096,
        max_cholesky_in_lanes: 12,
        max_lu_in_lanes: 32,
        max_left_system_in_lanes: 7,
        min_blocked: 65,
        min_blocked_cholesky: 33,
        min_blocked_spectral: 17,
        min_blocked_system: 24,
        max_aspect_of_values: 4,
        min_rows_in_pieces: 192,
        min_elements_in_pieces: 128 * 128,
    };
}
