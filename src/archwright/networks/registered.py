"""Our networks under the names by which AutoConfig, AutoModel and pruning find them; importing this is enough.

A config that is known here is read by its own class, whatever code lies beside it. A pruned network is not: with the
code beside it transformers runs that code, so that an export can be tried as others will load it.
"""

from transformers import AutoConfig, AutoModel, PreTrainedModel

from archwright.networks.cells import CellConfig
from archwright.networks.flexibert import FlexiBertModel
from archwright.networks.flexibert import family as flexibert_family  # noqa: F401  it lists itself
from archwright.networks.lts_gpt2 import LtsGpt2Config
from archwright.networks.nlu import NluModel
from archwright.networks.nlu import family as nlu_family  # noqa: F401

BODIES: tuple[type[PreTrainedModel], ...] = (FlexiBertModel, NluModel)

for config in (CellConfig, LtsGpt2Config, *(body.config_class for body in BODIES)):
    AutoConfig.register(config.model_type, config, exist_ok=True)
for body in BODIES:
    AutoModel.register(body.config_class, body, exist_ok=True)
