"""What a sub-network must compute where norms come first, written out by hand: neither transformers nor our code."""

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


PHI3_NAMES = {
    **LLAMA_NAMES,
    "query": "self_attn.qkv_proj.query",
    "key": "self_attn.qkv_proj.key",
    "value": "self_attn.qkv_proj.value",
    "up": "mlp.gate_up_proj.up",
    "gate": "mlp.gate_up_proj.gate",
}
GEMMA_NAMES = {
    **LLAMA_NAMES,
    "attention_out_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_out_norm": "post_feedforward_layernorm",
}
MODERNBERT_NAMES = {
    "layers": "layers",
    "query": "attn.Wqkv.query",
    "key": "attn.Wqkv.key",
    "value": "attn.Wqkv.value",
    "mix": "attn.Wo",
    "attention_norm": "attn_norm",
    "up": "mlp.Wi.up",
    "gate": "mlp.Wi.gate",
    "down": "mlp.Wo",
    "ffn_norm": "mlp_norm",
    "final_norm": "final_norm",
    "words": "embeddings.tok_embeddings",
    "embedding_norm": "embeddings.norm",
}


@dataclass(frozen=True)
class Decoder:
    """What tells a tiny decoder (or ModernBERT) from the others; the weights tell the rest."""

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
    gate: str = "silu"
    """What a gate goes through."""
    both_ways: bool = False
    """Whether a token sees those after it, and a window reaches as far to both sides."""
    centred: bool = False
    """Whether norms without a bias subtract the mean."""
    around_one: bool = False
    """Whether norms scale by one more than their weights, and words are as much larger as the width has a root."""
    scale: float | None = None
    """What scores are divided by, squared; the size of a head unless told."""
    cap: float | None = None
    """What no score goes beyond."""
    logit_cap: float | None = None
    bases: tuple[float, ...] = (16.0, 16.0, 16.0)
    """Of the speeds by which each layer turns queries and keys."""

    def owner(self, head: int) -> int:
        """The removable head that a query head belongs to."""
        return head % self.queries if self.by_queries else head // self.queries

    def query_rows(self, kept: list[int]) -> list[int]:
        heads = [head for head in range(self.groups * self.queries) if self.owner(head) in kept]
        return [head * self.size + i for head in heads for i in range(self.size)]

    def key_rows(self, kept: list[int]) -> list[int]:
        heads = range(self.groups) if self.by_queries else kept
        return [head * self.size + i for head in heads for i in range(self.size)]


GEMMA = {"gate": "gelu_new", "around_one": True, "scale": 16.0}
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
    "phi3": Decoder(PHI3_NAMES, groups=4, queries=2, size=8),
    "phi3-queries": Decoder(PHI3_NAMES, groups=2, queries=4, size=8, windows=(3, 3, 3), by_queries=True),
    "gemma2": Decoder(GEMMA_NAMES, groups=4, queries=2, size=8, windows=(3, None, 3), cap=3.0, logit_cap=4.0, **GEMMA),
    "gemma2-queries": Decoder(
        GEMMA_NAMES, groups=2, queries=4, size=8, windows=(3, None, 3), by_queries=True, logit_cap=30.0, **GEMMA
    ),
    "gemma3_text": Decoder(
        GEMMA_NAMES, groups=4, queries=2, size=8, windows=(3, None, 3), bases=(16.0, 256.0, 16.0), **GEMMA
    ),
    "modernbert": Decoder(
        MODERNBERT_NAMES,
        groups=4,
        queries=1,
        size=4,
        windows=(None, 2, 2),
        bases=(256.0, 16.0, 16.0),
        gate="gelu",
        both_ways=True,
        centred=True,
    ),
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


def norm(state: State, name: str, x: torch.Tensor, of: Decoder | None = None) -> torch.Tensor:
    """LayerNorm where there is a bias or `of` says so, else division by the root mean square; nothing without one."""
    if f"{name}.weight" not in state:
        return x
    weight = state[f"{name}.weight"] + (of is not None and of.around_one)
    if f"{name}.bias" in state or (of is not None and of.centred):
        x = x - x.mean(-1, keepdim=True)
        return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight + state.get(f"{name}.bias", 0.0)
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight


def turned(x: torch.Tensor, base: float) -> torch.Tensor:
    """Feature i and feature i + half are a point in the plane, turned by its position / base^(2 i / size)."""
    half = x.shape[-1] // 2
    speeds = torch.tensor([base ** (-2 * i / x.shape[-1]) for i in range(half)], dtype=x.dtype)
    angles = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * speeds
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


def gelu_new(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def visible(real: torch.Tensor, window: int | None, *, both_ways: bool = False) -> torch.Tensor:
    """batch x query x key: nothing later, no padding, nothing before the window; or a window on both sides."""
    places = torch.arange(real.shape[1])
    back = places[:, None] - places[None, :]
    seen = back.abs() <= (window or len(places)) if both_ways else (back >= 0) & (back < (window or len(places)))
    return seen[None] & real[:, None, :]


def attention(state: State, layer: str, of: Decoder, place: int, x: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """All query heads, side by side."""
    q, k, v = (linear(state, f"{layer}.{of.names[part]}", x) for part in ("query", "key", "value"))
    scale = math.sqrt(of.scale or of.size) * (place + 1 if of.by_depth else 1)
    contexts = []
    for head in range(of.groups * of.queries):
        mine, shared = head, head // of.queries
        query = q[..., mine * of.size : (mine + 1) * of.size]
        key, value = (t[..., shared * of.size : (shared + 1) * of.size] for t in (k, v))
        if f"{layer}.{of.names.get('query_norm')}.weight" in state:
            query = norm(state, f"{layer}.self_attn.q_norm", query, of)
            key = norm(state, f"{layer}.self_attn.k_norm", key, of)
        if "positions" not in of.names:
            query, key = turned(query, of.bases[place]), turned(key, of.bases[place])
        scores = torch.einsum("bid,bjd->bij", query, key) / scale
        scores = scores if of.cap is None else of.cap * torch.tanh(scores / of.cap)
        scores = torch.where(visible(real, of.windows[place], both_ways=of.both_ways), scores, HIDDEN_AWAY)
        contexts.append(torch.softmax(scores, -1) @ value)
    return torch.cat(contexts, -1)


def ffn(state: State, layer: str, of: Decoder, x: torch.Tensor) -> torch.Tensor:
    """What the second linear reads."""
    up = linear(state, f"{layer}.{of.names['up']}", x)
    if "gate" not in of.names:
        return gelu_new(up)
    return GATES[of.gate](linear(state, f"{layer}.{of.names['gate']}", x)) * up


GATES = {
    "silu": lambda x: x * torch.sigmoid(x),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))),
    "gelu_new": gelu_new,
}


def only(x: torch.Tensor, kept: list[int]) -> torch.Tensor:
    mask = torch.zeros(x.shape[-1], dtype=x.dtype)
    mask[kept] = 1
    return x * mask


def run(state: State, of: Decoder, masks: Masks, inputs: dict[str, torch.Tensor]) -> Hidden:
    """The whole network with everything outside `masks` set to zero, and empty sub-layers left out."""
    seen, ids, real = Hidden(), inputs["input_ids"], inputs["attention_mask"].bool()
    x = state[f"backbone.{of.names['words']}.weight"][ids]
    if of.around_one:
        x = x * math.sqrt(x.shape[-1])
    if "embedding_norm" in of.names:
        x = norm(state, f"backbone.{of.names['embedding_norm']}", x, of)
    if "positions" in of.names:
        x = x + state[f"backbone.{of.names['positions']}.weight"][: ids.shape[1]]
    for place, (heads, units) in enumerate(masks):
        layer = f"backbone.{of.names['layers']}.{place}"
        context = wide = None
        if heads:
            normed = norm(state, f"{layer}.{of.names['attention_norm']}", x, of)
            context = attention(state, layer, of, place, normed, real)
            mixed = linear(state, f"{layer}.{of.names['mix']}", only(context, of.query_rows(heads)))
            x = x + norm(state, f"{layer}.{of.names.get('attention_out_norm')}", mixed, of)
        if units:
            wide = ffn(state, layer, of, norm(state, f"{layer}.{of.names['ffn_norm']}", x, of))
            written = linear(state, f"{layer}.{of.names['down']}", only(wide, units))
            x = x + norm(state, f"{layer}.{of.names.get('ffn_out_norm')}", written, of)
        seen.contexts.append(context)
        seen.hidden_units.append(wide)
    seen.states = norm(state, f"backbone.{of.names['final_norm']}", x, of)
    return seen


def parts_kept(of: Decoder, heads: list[int], units: list[int]) -> dict[str, tuple[list[int] | None, list[int] | None]]:
    """Rows and columns that stay, by part; None: all of them."""
    queries, keys = of.query_rows(heads), of.key_rows(heads)
    attention_parts = {
        "query": (queries, None),
        "key": (keys, None),
        "value": (keys, None),
        "mix": (None, queries),
        **dict.fromkeys(("attention_norm", "attention_out_norm", "query_norm", "key_norm"), (None, None)),
    }
    ffn_parts = {"up": (units, None), "gate": (units, None), "down": (None, units)}
    ffn_parts |= dict.fromkeys(("ffn_norm", "ffn_out_norm"), (None, None))
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
