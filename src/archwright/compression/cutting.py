"""What is made smaller of a fine-tuned original before its layers are: vocabulary, hidden width, word vectors."""

import torch

from archwright.compression.context import RunContext
from archwright.compression.order import sample_batches
from archwright.networks.embeddings import factorize_embeddings, keep_tokens
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.importance import embedding_sensitivity
from archwright.subnet.width import narrow_network
from archwright.training.task_data import parse_width, save_network


def cut_original(context: RunContext, original: PrunedNetwork) -> PrunedNetwork:
    """The network whose layers are pruned, once per run: what is cut of `original`, or itself if nothing is.

    The run folder keeps the fine-tuned original as it was, to compare with and to learn from.
    """
    data = context.task_data
    if context.start == context.run.original:
        return original
    with context.group.first_ahead():  # which cuts, and saves what the others load
        if context.start.exists():
            return load_saved_network(context.start).to(data.device)
        return cut(context, original)


def cut(context: RunContext, original: PrunedNetwork) -> PrunedNetwork:
    """What --vocabulary, --width and --embedding-rank leave of it, saved in the run folder."""
    model, before, data = context.config.model, context.original_model, context.task_data
    with context.run.phase("cut"):
        if model.vocabulary != before.vocabulary and data.vocabulary is not None:
            keep_tokens(original, torch.from_numpy(data.vocabulary.kept))
        if (width := parse_width(model, original.config)) is not None:
            original = narrow_network(original, width, sample_batches(context), context.task_data.loss)
        if model.embedding_rank is not None and before.embedding_rank is None:
            sensitivity = embedding_sensitivity(original, sample_batches(context), context.task_data.loss)
            factorize_embeddings(original, model.embedding_rank, data.token_counts, sensitivity)
        original.to(data.device)
        save_network(original, data, context.start)
    return original
