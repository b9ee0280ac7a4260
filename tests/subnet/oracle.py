"""What a sub-network must compute, written out by hand from the state dict: neither transformers nor our code."""

import math
from dataclasses import dataclass, field

import torch

from tests.subnet import decoder_oracle
from tests.subnet.decoder_oracle import DECODERS

State = dict[str, torch.Tensor]
Masks = list[tuple[list[int], list[int]]]
"""Per layer: the heads and the units that are kept."""

BERT_NAMES = {
    "layers": "encoder.layer",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mix": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "ffn_norm": "output.LayerNorm",
}
MPNET_NAMES = {
    **BERT_NAMES,
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "mix": "attention.attn.o",
    "attention_norm": "attention.LayerNorm",
}
DEBERTA_NAMES = {
    **BERT_NAMES,
    "query": "attention.self.query_proj",
    "key": "attention.self.key_proj",
    "value": "attention.self.value_proj",
    "position_query": "attention.self.pos_query_proj",
    "position_key": "attention.self.pos_key_proj",
}
DISTIL_NAMES = {
    "layers": "transformer.layer",
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "mix": "attention.out_lin",
    "attention_norm": "sa_layer_norm",
    "up": "ffn.lin1",
    "down": "ffn.lin2",
    "ffn_norm": "output_layer_norm",
}


def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


ROBERTAS = ("roberta", "xlm", "camembert", "mpnet")
"""They count positions from the padding id, 1, on."""
ACTIVATIONS = {
    **dict.fromkeys(("bert", *ROBERTAS), torch.tanh),
    "distilbert": lambda x: x.clamp(min=0),
    **dict.fromkeys(("electra", "deberta", "modernbert"), gelu),
}
"""Of the head."""


@dataclass
class Seen:
    """Logits, and per layer what the attention's and the FFN's output linears read (None where there is none)."""

    logits: torch.Tensor | None = None
    contexts: list[torch.Tensor | None] = field(default_factory=list)
    hidden_units: list[torch.Tensor | None] = field(default_factory=list)


def family_of(name: str) -> str:
    return name.partition("-")[0]


NAMES = {"distilbert": DISTIL_NAMES, "mpnet": MPNET_NAMES, "deberta": DEBERTA_NAMES}


def names_of(name: str) -> dict[str, str]:
    return NAMES.get(family_of(name), BERT_NAMES)


def linear(state: State, name: str, x: torch.Tensor) -> torch.Tensor:
    return torch.einsum("...i,oi->...o", x, state[f"{name}.weight"]) + state[f"{name}.bias"]


def norm(state: State, name: str, x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    return centred / scale * state[f"{name}.weight"] + state[f"{name}.bias"]


def embedded(state: State, name: str, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    ids, root = inputs["input_ids"], "backbone.embeddings"
    positions = torch.arange(ids.shape[1]).expand_as(ids)
    if family_of(name) in ROBERTAS:  # count real tokens and start behind the padding id, 1
        real = (ids != 1).long()
        positions = torch.cumsum(real, 1) * real + 1
    x = state[f"{root}.word_embeddings.weight"][ids]
    if f"{root}.position_embeddings.weight" in state:
        x = x + state[f"{root}.position_embeddings.weight"][positions]
    if f"{root}.token_type_embeddings.weight" in state:
        x = x + state[f"{root}.token_type_embeddings.weight"][inputs.get("token_type_ids", torch.zeros_like(ids))]
    x = norm(state, f"{root}.LayerNorm", x)
    projection = "backbone.embeddings_project"
    return linear(state, projection, x) if f"{projection}.weight" in state else x


def distance_bucket(distance: int) -> int:
    """MPNet's row for a token so many places before: each of 8 has its own, those up to 128 share 8 more."""
    back = abs(distance)
    row = back if back < 8 else min(15, 8 + int(math.log(back / 8) / math.log(16) * 8))
    return row + (16 if distance < 0 else 0)


def position_scores(state: State, head: int, length: int) -> torch.Tensor | float:
    """What MPNet adds to the scores of a head: query x key."""
    table = state.get("backbone.encoder.relative_attention_bias.weight")
    if table is None:
        return 0.0
    return torch.stack(
        [torch.stack([table[distance_bucket(i - j), head] for j in range(length)]) for i in range(length)]
    )


BUCKETS = {"deberta-v2": 4, "deberta-v2-shared": 24}
"""Rows of the table of relative positions to each side."""


def distance_row(distance: int, buckets: int) -> int:
    """DeBERTa's row for a query so many places behind a key: up to half of the buckets one each, then by logarithm."""
    half, row = buckets // 2, distance
    if buckets < 24 and abs(distance) > half:
        far = math.ceil(math.log(abs(distance) / half) / math.log(7 / half) * (half - 1)) + half
        row = far if distance > 0 else -far
    return min(max(row + buckets, 0), 2 * buckets - 1)


def disentangled(state: State, layer: str, names: dict[str, str], x: torch.Tensor, real: torch.Tensor, buckets: int):
    """DeBERTa: tokens with tokens, tokens with positions, positions with tokens; 4 features per head."""
    table = state["backbone.encoder.rel_embeddings.weight"]
    if "backbone.encoder.LayerNorm.weight" in state:
        table = norm(state, "backbone.encoder.LayerNorm", table)
    own = f"{layer}.{names['position_key']}.weight" in state
    q, k, v = (linear(state, f"{layer}.{names[part]}", x) for part in ("query", "key", "value"))
    place_q = linear(state, f"{layer}.{names['position_query' if own else 'query']}", table)
    place_k = linear(state, f"{layer}.{names['position_key' if own else 'key']}", table)
    length, contexts = x.shape[1], []
    rows = torch.tensor([[distance_row(i - j, buckets) for j in range(length)] for i in range(length)])
    back = torch.tensor([[distance_row(j - i, buckets) for j in range(length)] for i in range(length)])
    scale = float(torch.tensor(12.0).sqrt())  # three kinds of scores, 4 features; rounded as the stock network does
    for first in range(0, x.shape[-1], 4):
        mine = slice(first, first + 4)
        scores = torch.einsum("bid,bjd->bij", q[..., mine], k[..., mine])
        scores = scores + torch.einsum("bid,ijd->bij", q[..., mine], place_k[:, mine][rows])
        scores = scores + torch.einsum("bjd,ijd->bij", k[..., mine], place_q[:, mine][back.T])
        scores = (scores / scale).masked_fill(~real[:, None, :], -torch.inf)
        contexts.append(torch.softmax(scores, -1) @ v[..., mine])
    return torch.cat(contexts, -1)


def attention(state: State, layer: str, names: dict[str, str], x: torch.Tensor, real: torch.Tensor, size: int):
    """All heads, side by side."""
    contexts = []
    for first in range(0, x.shape[-1], size):
        rows = slice(first, first + size)
        q, k, v = (linear(state, f"{layer}.{names[part]}", x)[..., rows] for part in ("query", "key", "value"))
        scores = torch.einsum("bid,bjd->bij", q, k) / math.sqrt(size)
        scores = scores + position_scores(state, first // size, x.shape[1])
        scores = scores.masked_fill(~real[:, None, :], -torch.inf)
        contexts.append(torch.softmax(scores, -1) @ v)
    return torch.cat(contexts, -1)


def zeroed(x: torch.Tensor, kept: list[int]) -> torch.Tensor:
    mask = torch.zeros(x.shape[-1], dtype=x.dtype)
    mask[kept] = 1
    return x * mask


def run(
    state: State,
    name: str,
    masks: Masks,
    inputs: dict[str, torch.Tensor],
    *,
    pooling: str = "cls",
    kind: str = "classification",
) -> Seen:
    """The whole network with everything outside `masks` set to zero, and empty sub-layers left out."""
    if kind == "choice":
        return run_choices(state, name, masks, inputs, pooling=pooling)
    if kind == "embeddings":
        return run_texts(state, name, masks, inputs, pooling=pooling)
    seen, x = run_decoder(state, name, masks, inputs) if name in DECODERS else run_encoder(state, name, masks, inputs)
    seen.logits = ANSWERS[kind](state, name, x, inputs, pooling)
    return seen


def run_choices(state: State, name: str, masks: Masks, inputs: dict[str, torch.Tensor], *, pooling: str) -> Seen:
    """Choice after choice, each of them a text of its own."""
    numbers = range(inputs["input_ids"].shape[1])
    runs = [run(state, name, masks, {k: v[:, i] for k, v in inputs.items()}, pooling=pooling) for i in numbers]
    return Seen(logits=torch.cat([seen.logits for seen in runs], dim=1))


def run_texts(state: State, name: str, masks: Masks, inputs: dict[str, torch.Tensor], *, pooling: str) -> Seen:
    """Vectors of text after text: rows x texts x width."""
    vectors, network = [], run_decoder if name in DECODERS else run_encoder
    for place in range(inputs["input_ids"].shape[1]):
        text = {key: value[:, place] for key, value in inputs.items()}
        x, real = network(state, name, masks, text)[1], text["attention_mask"].bool()
        means = torch.stack([row[spec].mean(0) for row, spec in zip(x, real, strict=True)])
        vectors.append(means if pooling == "mean" else pooled(x, real, pooling))
    return Seen(logits=torch.stack(vectors, dim=1))


def run_decoder(state: State, name: str, masks: Masks, inputs: dict[str, torch.Tensor]) -> tuple[Seen, torch.Tensor]:
    seen = decoder_oracle.run(state, DECODERS[name], masks, inputs)
    return Seen(None, seen.contexts, seen.hidden_units), seen.states


def run_encoder(
    state: State, name: str, masks: Masks, inputs: dict[str, torch.Tensor], size: int = 4
) -> tuple[Seen, torch.Tensor]:
    names, seen, real = names_of(name), Seen(), inputs["attention_mask"].bool()
    x = embedded(state, name, inputs)
    for place, (heads, units) in enumerate(masks):
        layer = f"backbone.{names['layers']}.{place}"
        context = wide = None
        if heads:
            if name in BUCKETS:
                context = disentangled(state, layer, names, x, real, BUCKETS[name])
            else:
                context = attention(state, layer, names, x, real, size)
            kept = [head * size + i for head in heads for i in range(size)]
            mixed = linear(state, f"{layer}.{names['mix']}", zeroed(context, kept))
            x = norm(state, f"{layer}.{names['attention_norm']}", x + mixed)
        if units:
            wide = gelu(linear(state, f"{layer}.{names['up']}", x))
            x = norm(
                state,
                f"{layer}.{names['ffn_norm']}",
                x + linear(state, f"{layer}.{names['down']}", zeroed(wide, units)),
            )
        seen.contexts.append(context)
        seen.hidden_units.append(wide)
    return seen, x


def pooled(x: torch.Tensor, real: torch.Tensor, pooling: str) -> torch.Tensor:
    if pooling == "cls":
        return x[:, 0]
    if pooling == "last":
        return torch.stack([row[spec][-1] for row, spec in zip(x, real, strict=True)])
    means = torch.stack([row[spec].mean(0) for row, spec in zip(x, real, strict=True)])
    centred = means - means.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()


def each_token(state: State, name: str, x: torch.Tensor) -> torch.Tensor:
    """The head of every token: one linear, but in ModernBERT the head of texts."""
    return head(state, name, x) if name == "modernbert" else linear(state, "head.out", x)


def head(state: State, name: str, x: torch.Tensor) -> torch.Tensor:
    if name == "modernbert":
        inner = gelu(x @ state["head.dense.weight"].T)
        return linear(state, "head.out", decoder_oracle.norm(state, "head.norm", inner, DECODERS[name]))
    if name in DECODERS:
        return x @ state["head.out.weight"].T
    return linear(state, "head.out", ACTIVATIONS[family_of(name)](linear(state, "head.dense", x)))


def text_scores(state: State, name: str, x: torch.Tensor, inputs: dict[str, torch.Tensor], pooling: str):
    return head(state, name, pooled(x, inputs["attention_mask"].bool(), pooling))


def span_scores(state: State, name: str, x: torch.Tensor, inputs: dict[str, torch.Tensor], pooling: str):
    """Two scores per token; what is padding or outside the context gets -10,000."""
    scores = each_token(state, name, x).transpose(1, 2)
    allowed = inputs["attention_mask"].bool() & inputs["context_mask"].bool()
    return torch.where(allowed[:, None], scores, -1e4)


def tag_scores(state: State, name: str, x: torch.Tensor, inputs: dict[str, torch.Tensor], pooling: str):
    """A score of every token for every tag."""
    return each_token(state, name, x)


def word_scores(state: State, name: str, x: torch.Tensor, inputs: dict[str, torch.Tensor], pooling: str):
    """Every token against every word; the table is that of the inputs where there is no other."""
    tied = state[f"backbone.{DECODERS[name].names['words']}.weight"]
    scores, cap = x @ state.get("lm_head.weight", tied).T, DECODERS[name].logit_cap
    return scores if cap is None else cap * torch.tanh(scores / cap)


ANSWERS = {
    "classification": text_scores,
    "qa": span_scores,
    "lm": word_scores,
    "tokens": tag_scores,
    "multi-label": text_scores,
}


def small_tensors(tensors: State, name: str, masks: Masks, *, size: int = 4) -> State:
    """The entries that an extracted network has, under the names that they have there; layers move up."""
    if name in DECODERS:
        return decoder_oracle.small_tensors(tensors, DECODERS[name], masks)
    names, kept = names_of(name), {}
    root = f"backbone.{names['layers']}."
    kept |= {key: value for key, value in tensors.items() if not key.startswith(root)}
    left = [place for place, (heads, units) in enumerate(masks) if heads or units]
    for new, old in enumerate(left):
        heads, units = masks[old]
        inner = [head * size + i for head in heads for i in range(size)]
        parts = {
            **dict.fromkeys(("query", "key", "value", "position_query", "position_key"), (inner, None)),
            "mix": (None, inner),
            "attention_norm": (None, None),
        }
        parts = parts if heads else {}
        parts |= {"up": (units, None), "down": (None, units), "ffn_norm": (None, None)} if units else {}
        for part, (rows, cols) in parts.items():
            if f"{root}{old}.{names.get(part)}.weight" not in tensors:
                continue
            weight, bias = (tensors[f"{root}{old}.{names[part]}.{leaf}"] for leaf in ("weight", "bias"))
            weight = weight if rows is None else weight[rows]
            kept[f"{root}{new}.{names[part]}.weight"] = weight if cols is None else weight[:, cols]
            kept[f"{root}{new}.{names[part]}.bias"] = bias if rows is None else bias[rows]
    return kept
