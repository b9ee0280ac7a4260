"""A student's layer from one of its teacher's: heads and units cut from it, the rest fitted."""

import torch
from torch import nn
from torch.nn.functional import layer_norm

from archwright.networks.nlu.network import MobileLayer, NluLayer
from archwright.training.inheritance.fitting import fit_linear, fit_norm
from archwright.training.inheritance.states import StudentStates, TeacherLayer


def inherit_base_layer(layer: NluLayer, student: StudentStates, teacher: TeacherLayer, lift: torch.Tensor) -> None:
    """Attention and FFN cut from the teacher's, then fitted behind one another."""
    attention, ffn = layer.attention, layer.ffn
    inherit_heads(layer, teacher, lift)
    fit_linear(attention.output, student.run(layer, attention.context), teacher.attention_sum @ lift.T - student.tokens)
    fit_norm(attention.norm, student.run(layer, attention.norm, inputs=True), teacher.attention @ lift.T)
    state = student.run(layer, attention.norm)
    units = inherit_units(layer, teacher, state, lift)
    ffn.down.weight[:, : len(units)] = lift @ teacher.modules["down"].weight[:, units]
    ffn.down.weight[:, len(units) :] = 0.0
    ffn.down.bias.copy_(lift @ teacher.modules["down"].bias)
    fit_linear(ffn.down, student.run(layer, ffn.activation), teacher.ffn_sum @ lift.T - state)
    fit_norm(ffn.norm, student.run(layer, ffn.norm, inputs=True), teacher.outputs @ lift.T)


def inherit_mobile_layer(layer: MobileLayer, student: StudentStates, teacher: TeacherLayer, lift: torch.Tensor) -> None:
    """The narrow stream holds the principal directions of the state; everything in it is fitted."""
    attention, ffn = layer.attention, layer.ffn
    states = student.tokens.double()
    narrow = layer.narrow.out_features
    directions = torch.linalg.eigh(states.T @ states).eigenvectors[:, -narrow:].float()  # wide x narrow
    layer.narrow.weight.copy_(directions.T)
    layer.narrow.bias.zero_()

    def in_stream(wide: torch.Tensor) -> torch.Tensor:
        return layer_norm(wide @ lift.T @ directions, (narrow,))

    inherit_heads(layer, teacher, lift)
    stream = student.run(layer, layer.narrow_norm)
    fit_linear(attention.output, student.run(layer, attention.context), in_stream(teacher.attention) - stream)
    fit_norm(attention.norm, student.run(layer, attention.norm, inputs=True), in_stream(teacher.attention))
    stream = student.run(layer, attention.norm)
    inherit_units(layer, teacher, stream)
    fit_linear(ffn.down, student.run(layer, ffn.activation), in_stream(teacher.outputs) - stream)
    fit_norm(ffn.norm, student.run(layer, ffn.norm, inputs=True), in_stream(teacher.outputs))
    fit_linear(layer.widen, student.run(layer, ffn.norm), teacher.ffn_sum @ lift.T - student.tokens)
    fit_norm(layer.widen_norm, student.run(layer, layer.widen_norm, inputs=True), teacher.outputs @ lift.T)


LAYERS = {NluLayer: inherit_base_layer, MobileLayer: inherit_mobile_layer}
"""Kind of block -> how it is filled."""


def inherit_heads(layer: NluLayer, teacher: TeacherLayer, lift: torch.Tensor) -> None:
    """Queries, keys and values, each head to the rank that it has in the student.

    With x~ = (x, 1) and S its second moment, a head's scores are x~' M x~; their best approximation of rank r, weighted
    with S, is a singular value decomposition. Values are those directions that move the stream most.
    """
    attention, names = layer.attention, ("query", "key", "value")
    ones = torch.ones(len(teacher.inputs), 1, device=teacher.inputs.device)
    known = torch.cat([teacher.inputs, ones], dim=1).double()
    moment = known.T @ known / len(known)
    moment.diagonal().add_(1e-6 * moment.diagonal().mean())
    root = torch.linalg.cholesky(moment)
    weights = {name: augmented(teacher.modules[name]).unflatten(0, (teacher.heads, -1)) for name in names}
    mixes = teacher.modules["mix"].weight.double().unflatten(1, (teacher.heads, -1))  # width x heads x size
    size, width = attention.width // attention.heads, attention.output.weight
    order = strongest_heads(weights["value"], mixes, root)
    in_stream = isinstance(layer, MobileLayer)
    if not in_stream:
        attention.output.weight.mul_(0)
        attention.output.bias.copy_(lift @ teacher.modules["mix"].bias)
    for place, head in enumerate(order[: attention.heads]):
        rows = slice(place * size, (place + 1) * size)
        query, key = low_rank_scores(weights["query"][head], weights["key"][head], root, size)
        value, mix = low_rank_values(weights["value"][head], mixes[:, head], root, size)
        for linear, part in ((attention.query, query), (attention.key, key), (attention.value, value)):
            own = slice(rows.start, rows.start + len(part))
            linear.weight[own] = part[:, :-1].float() @ lift.T
            linear.bias[own] = part[:, -1].float()
        if not in_stream:
            width[:, rows.start : rows.start + mix.shape[1]] = lift @ mix.float()


def augmented(linear: nn.Linear) -> torch.Tensor:
    """Weights and bias as one matrix, outputs x (inputs and one)."""
    bias = torch.zeros(linear.out_features, device=linear.weight.device) if linear.bias is None else linear.bias
    return torch.cat([linear.weight, bias[:, None]], dim=1).double()


def strongest_heads(values: torch.Tensor, mixes: torch.Tensor, root: torch.Tensor) -> list[int]:
    """All heads of the teacher, those first that can move the stream most."""
    moves = [float((mixes[:, head] @ (values[head] @ root)).square().sum()) for head in range(len(values))]
    return sorted(range(len(moves)), key=lambda head: -moves[head])


def low_rank_scores(
    query: torch.Tensor, key: torch.Tensor, root: torch.Tensor, size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a head's queries and keys (size x inputs) others of at most `size` rows with nearly the same scores.

    A student's head divides by the root of its own size, so that the teacher's root is made up for.
    """
    left, right = query @ root, key @ root  # teacher size x inputs
    q_basis, q_small = torch.linalg.qr(left.T)  # inputs x teacher size
    k_basis, k_small = torch.linalg.qr(right.T)
    u, values, v = torch.linalg.svd(q_small @ k_small.T / len(query) ** 0.5)
    rank = min(size, len(values))
    scale = (values[:rank] * size**0.5).sqrt()
    inverse = torch.linalg.inv(root)
    new_query = scale[:, None] * (q_basis @ u[:, :rank]).T @ inverse
    new_key = scale[:, None] * (k_basis @ v[:rank].T).T @ inverse
    return new_query, new_key


def low_rank_values(
    value: torch.Tensor, mix: torch.Tensor, root: torch.Tensor, size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a head's values (teacher size x inputs) at most `size` directions, and how these enter the stream."""
    if len(value) <= size:
        return value, mix
    v_basis, v_small = torch.linalg.qr((value @ root).T)
    u, scales, v = torch.linalg.svd(mix @ v_small.T, full_matrices=False)  # width x teacher size
    new_value = (v_basis @ v[:size].T).T @ torch.linalg.inv(root)
    return new_value, u[:, :size] * scales[:size]


def inherit_units(
    layer: NluLayer, teacher: TeacherLayer, state: torch.Tensor, lift: torch.Tensor | None = None
) -> torch.Tensor:
    """Fits the units that add most to the teacher's stream; returns which they are.

    With the lift, where the state is the teacher's lifted, they begin as the teacher's own. Where the teacher has fewer
    units, the others stay as they are.
    """
    up, down = teacher.modules["up"], teacher.modules["down"]
    before = up(teacher.attention)  # tokens x units
    adds = nn.functional.gelu(before).square().mean(0) * down.weight.square().sum(0)
    number = min(layer.ffn.up.out_features, up.out_features)
    units = adds.argsort(descending=True)[:number]
    chosen = nn.Linear(layer.ffn.up.in_features, number, device=state.device)
    chosen.weight.copy_(torch.zeros_like(chosen.weight) if lift is None else up.weight[units] @ lift.T)
    chosen.bias.copy_(up.bias[units])
    fit_linear(chosen, state, before[:, units])
    layer.ffn.up.weight[:number] = chosen.weight
    layer.ffn.up.bias[:number] = chosen.bias
    return units
