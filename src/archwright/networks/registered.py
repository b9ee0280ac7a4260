"""Our encoders under the names that transformers' AutoConfig and AutoModel know; importing this is enough."""

from transformers import AutoConfig, AutoModel, PreTrainedModel

from archwright.networks.flexibert import FlexiBertModel
from archwright.networks.nlu import NluModel

BODIES: tuple[type[PreTrainedModel], ...] = (FlexiBertModel, NluModel)

for body in BODIES:
    AutoConfig.register(body.config_class.model_type, body.config_class, exist_ok=True)
    AutoModel.register(body.config_class, body, exist_ok=True)
