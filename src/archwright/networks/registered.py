"""Our encoders under the names by which AutoConfig, AutoModel and pruning find them; importing this is enough."""

from transformers import AutoConfig, AutoModel, PreTrainedModel

from archwright.networks.flexibert import FlexiBertModel
from archwright.networks.flexibert import family as flexibert_family  # noqa: F401  it lists itself
from archwright.networks.nlu import NluModel
from archwright.networks.nlu import family as nlu_family  # noqa: F401

BODIES: tuple[type[PreTrainedModel], ...] = (FlexiBertModel, NluModel)

for body in BODIES:
    AutoConfig.register(body.config_class.model_type, body.config_class, exist_ok=True)
    AutoModel.register(body.config_class, body, exist_ok=True)
