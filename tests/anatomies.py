"""Anatomies by formula, for networks whose layers are all alike: an oracle beside what is read off a network."""

from archwright.subnet.spec import Anatomy, LayerAnatomy, OutputHead, PrunableCost, WeightCount


def encoder_layer(heads: int, units: int, width: int, head_size: int) -> LayerAnatomy:
    """Four linears of attention and two of an FFN, all with biases, and a norm of two vectors for each half."""
    half = WeightCount(vectors=3 * width)  # bias of the last linear, and the norm
    return LayerAnatomy(
        heads=heads,
        units=units,
        attention=PrunableCost(WeightCount(4 * width * head_size, 3 * head_size), half),
        ffn=PrunableCost(WeightCount(2 * width, 1), half),
        features=head_size,
    )


def encoder(layers: int, heads: int, units: int, width: int, *, rows: int = 9) -> Anatomy:
    """An encoder with two labels and so many rows of embeddings."""
    layer = encoder_layer(heads, units, width, width // heads)
    return Anatomy((layer,) * layers, width=width, labels=2, embedding=WeightCount(rows * width, 2 * width))


def smollm2(*, shared_keys: bool) -> Anatomy:
    """SmolLM2-135M with two labels: 9 query heads in three groups, no biases, gated FFN, norms of one vector."""
    width, size = 576, 64
    keys = WeightCount(2 * width * 3 * size)  # of all three groups, and their values
    own = WeightCount(2 * width * 3 * size)  # queries and mix of three heads
    norm = WeightCount(vectors=width)
    attention = (
        PrunableCost(own, norm + keys) if shared_keys else PrunableCost(own + WeightCount(2 * width * size), norm)
    )
    layer = LayerAnatomy(3, 1536, attention, PrunableCost(WeightCount(3 * width), norm), features=3 * size)
    output_head = OutputHead(norm=1, dense=False, bias=False)
    return Anatomy((layer,) * 30, width=width, labels=2, embedding=WeightCount(49_152 * width), output_head=output_head)
