"""Long short-term memory: layers of cells over sequences of different lengths, one way or both, with all weights in one array."""

from typing import Any

def get_num_params_in_lstm(input_size: Any, hidden_size: Any, num_layers: Any, bidirectional: Any) -> Any: ...
def init_lstm_weight(rng: Any, input_size: Any, hidden_size: Any, num_layers: Any, bidirectional: Any) -> Any: ...
def lstm(
    x: Any,
    h_0: Any,
    c_0: Any,
    weights: Any,
    seq_lengths: Any,
    input_size: Any,
    hidden_size: Any,
    num_layers: Any,
    dropout: Any,
    bidirectional: Any,
    precision: Any = None,
) -> Any: ...
def lstm_ref(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: Any,
    W_hh: Any,
    b_ih: Any,
    b_hh: Any,
    seq_lengths: Any,
    input_size: Any,
    hidden_size: Any,
    num_layers: Any,
    dropout: Any,
    bidirectional: Any,
) -> Any: ...
def swap_lstm_gates(weights: Any, input_size: Any, hidden_size: Any, num_layers: Any, bidirectional: Any) -> Any: ...
def unpack_lstm_weights(weights: Any, input_size: Any, hidden_size: Any, num_layers: Any, bidirectional: Any) -> Any: ...
