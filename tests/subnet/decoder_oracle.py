"""What a sub-network of a decoder must compute, written out by hand: neither transformers nor our code."""

import math
from dataclasses import dataclass, field

import torch

State = dict[str, torch.Tensor]
Masks = list[tuple[list[int], list[int]]]
"""Per layer: the heads to be removed one by one, and the units, that are kept."""
HIDDEN_AWAY = -1e30
"""Of a score: exp of it is zero, but a row of nothing else is still finite."""

LLAMA_NAMES = {
    "layers": "layers",
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "mix": "self_attn.o_proj",
    "attention_norm": "input_layernorm",
    "up": "mlp.up_proj",
    "gate": "mlp.gate_proj",
    "down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
    "query_norm": "self_attn.q_norm",
    "key_norm": "self_attn.k_norm",
    "final_norm": "norm",
    "words": "embed_tokens",
}
GPT2_NAMES = {
    "layers": "h",
    "query": "attn.c_attn.query",
    "key": "attn.c_attn.key",
    "value": "attn.c_attn.value",
    "mix": "attn.c_proj",
    "attention_norm": "ln_1",
    "up": "mlp.c_fc",
    "down": "mlp.c_proj",
    "ffn_norm": "ln_2",
    "final_norm": "ln_f",
    "words": "wte",
    "positions": "wpe",
}


@dataclass(frozen=True)
class Decoder:
    """What tells a tiny decoder from the others; the weights tell the rest."""

    names: dict[str, str]
    groups: int
    """Key/value heads."""
    queries: int
    """Query heads that read each of them."""
    size: int
    windows: tuple[int | None, ...] = (None, None, None)
    """How many tokens each layer sees, itself included."""
    by_depth: bool = False
    """Whether scores are divided by the number of the layer."""
    by_queries: bool = False
    """Whether a removable head is one query head of every group, not a whole group."""

    def owner(self, head: int) -> int:
        """The removable head that a query head belongs to."""
        return head % self.queries if self.by_queries else head // self.queries

    def query_rows(self, kept: list[int]) -> list[int]:
        heads = [head for head in range(self.groups * self.queries) if self.owner(head) in kept]
        return [head * self.size + i for head in heads for i in range(self.size)]

    def key_rows(self, kept: list[int]) -> list[int]:
        heads = range(self.groups) if self.by_queries else kept
        return [head * self.size + i for head in heads for i in range(self.size)]


DECODERS = {
    "gpt2": Decoder(GPT2_NAMES, groups=4, queries=1, size=4, by_depth=True),
    "llama": Decoder(LLAMA_NAMES, groups=4, queries=1, size=4),
    "llama-groups": Decoder(LLAMA_NAMES, groups=4, queries=2, size=4),
    "llama-queries": Decoder(LLAMA_NAMES, groups=2, queries=4, size=4, by_queries=True),
    "qwen2": Decoder(LLAMA_NAMES, groups=4, queries=2, size=4, windows=(None, 3, 3)),
    "qwen2-queries": Decoder(LLAMA_NAMES, groups=2, queries=4, size=4, windows=(None, None, 3), by_queries=True),
    "qwen3": Decoder(LLAMA_NAMES, groups=4, queries=2, size=8, windows=(3, None, 3)),
    "qwen3-queries": Decoder(LLAMA_NAMES, groups=2, queries=4, size=8, by_queries=True),
    "mistral": Decoder(LLAMA_NAMES, groups=4, queries=2, size=8, windows=(3, 3, 3)),
    "mistral-queries": Decoder(LLAMA_NAMES, groups=2, queries=4, size=8, by_queries=True),
}


@dataclass
class Hidden:
    """Final states, and per layer what the attention's and the FFN's output linears read (None where there is none)."""

    states: torch.Tensor | None = None
    contexts: list[torch.Tensor | None] = field(default_factory=list)
    hidden_units: list[torch.Tensor | None] = field(default_factory=list)


def linear(state: State, name: str, x: torch.Tensor) -> torch.Tensor:
    found = torch.einsum("...i,oi->...o", x, state[f"{name}.weight"])
    return found + state[f"{name}.bias"] if f"{name}.bias" in state else found


def norm(state: State, name: str, x: torch.Tensor) -> torch.Tensor:
    """LayerNorm where there is a bias, else division by the root mean square."""
    if f"{name}.bias" in state:
        x = x - x.mean(-1, keepdim=True)
        return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * state[f"{name}.weight"] + state[f"{name}.bias"]
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * state[f"{name}.weight"]


def turned(x: torch.Tensor) -> torch.Tensor:
    """Feature i and feature i + half are a point in the plane, turned by its position / 16^(2 i / size)."""
    half = x.shape[-1] // 2
    speeds = torch.tensor([16.0 ** (-2 * i / x.shape[-1]) for i in range(half)], dtype=x.dtype)
    angles = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * speeds
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


def gelu_new(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def visible(real: torch.Tensor, window: int | None) -> torch.Tensor:
    """batch x query x key: nothing later, no padding, nothing before the window."""
    places = torch.arange(real.shape[1])
    back = places[:, None] - places[None, :]
    seen = (back >= 0) & (back < (window or len(places)))
    return seen[None] & real[:, None, :]


def attention(state: State, layer: str, of: Decoder, place: int, x: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """All query heads, side by side."""
    q, k, v = (linear(state, f"{layer}.{of.names[part]}", x) for part in ("query", "key", "value"))
    scale = math.sqrt(of.size) * (place + 1 if of.by_depth else 1)
    contexts = []
    for head in range(of.groups * of.queries):
        mine, shared = head, head // of.queries
        query = q[..., mine * of.size : (mine + 1) * of.size]
        key, value = (t[..., shared * of.size : (shared + 1) * of.size] for t in (k, v))
        if f"{layer}.{of.names.get('query_norm')}.weight" in state:
            query, key = norm(state, f"{layer}.self_attn.q_norm", query), norm(state, f"{layer}.self_attn.k_norm", key)
        if "positions" not in of.names:
            query, key = turned(query), turned(key)
        scores = torch.einsum("bid,bjd->bij", query, key) / scale
        scores = torch.where(visible(real, of.windows[place]), scores, HIDDEN_AWAY)
        contexts.append(torch.softmax(scores, -1) @ value)
    return torch.cat(contexts, -1)


def ffn(state: State, layer: str, of: Decoder, x: torch.Tensor) -> torch.Tensor:
    """What the second linear reads."""
    up = linear(state, f"{layer}.{of.names['up']}", x)
    if "gate" not in of.names:
        return gelu_new(up)
    gate = linear(state, f"{layer}.{of.names['gate']}", x)
    return gate * torch.sigmoid(gate) * up


def only(x: torch.Tensor, kept: list[int]) -> torch.Tensor:
    mask = torch.zeros(x.shape[-1], dtype=x.dtype)
    mask[kept] = 1
    return x * mask


def run(state: State, of: Decoder, masks: Masks, inputs: dict[str, torch.Tensor]) -> Hidden:
    """The whole network with everything outside `masks` set to zero, and empty sub-layers left out."""
    seen, ids, real = Hidden(), inputs["input_ids"], inputs["attention_mask"].bool()
    x = state[f"backbone.{of.names['words']}.weight"][ids]
    if "positions" in of.names:
        x = x + state[f"backbone.{of.names['positions']}.weight"][: ids.shape[1]]
    for place, (heads, units) in enumerate(masks):
        layer = f"backbone.{of.names['layers']}.{place}"
        context = wide = None
        if heads:
            context = attention(state, layer, of, place, norm(state, f"{layer}.{of.names['attention_norm']}", x), real)
            x = x + linear(state, f"{layer}.{of.names['mix']}", only(context, of.query_rows(heads)))
        if units:
            wide = ffn(state, layer, of, norm(state, f"{layer}.{of.names['ffn_norm']}", x))
            x = x + linear(state, f"{layer}.{of.names['down']}", only(wide, units))
        seen.contexts.append(context)
        seen.hidden_units.append(wide)
    seen.states = norm(state, f"backbone.{of.names['final_norm']}", x)
    return seen


def parts_kept(of: Decoder, heads: list[int], units: list[int]) -> dict[str, tuple[list[int] | None, list[int] | None]]:
    """Rows and columns that stay, by part; None: all of them."""
    queries, keys = of.query_rows(heads), of.key_rows(heads)
    attention_parts = {
        "query": (queries, None),
        "key": (keys, None),
        "value": (keys, None),
        "mix": (None, queries),
        **dict.fromkeys(("attention_norm", "query_norm", "key_norm"), (None, None)),
    }
    ffn_parts = {"up": (units, None), "gate": (units, None), "down": (None, units), "ffn_norm": (None, None)}
    return (attention_parts if heads else {}) | (ffn_parts if units else {})


def small_tensors(tensors: State, of: Decoder, masks: Masks) -> State:
    """The entries that an extracted network has, under the names that they have there; layers move up."""
    root = f"backbone.{of.names['layers']}."
    kept = {key: value for key, value in tensors.items() if not key.startswith(root)}
    left = [place for place, (heads, units) in enumerate(masks) if heads or units]
    for new, old in enumerate(left):
        for part, (rows, cols) in parts_kept(of, *masks[old]).items():
            for leaf in ("weight", "bias"):
                tensor = tensors.get(f"{root}{old}.{of.names.get(part)}.{leaf}")
                if tensor is None:
                    continue
                tensor = tensor if rows is None else tensor[rows]
                tensor = tensor if cols is None or tensor.dim() == 1 else tensor[:, cols]
                kept[f"{root}{new}.{of.names[part]}.{leaf}"] = tensor
    return kept
