"""What differs between exports of networks for different tasks. Importing the list loads no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from archwright.tasks import TASK_KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    Inputs = Mapping[str, Tensor]
    Select = Callable[[Tensor, Inputs], Tensor]


CLOSED = -1e4
"""The score of a place that cannot be an answer."""


def all_logits(logits: "Tensor", inputs: "Inputs") -> "Tensor":
    return logits


def token_logits(logits: "Tensor", inputs: "Inputs") -> "Tensor":
    """Tokens x vocabulary, without padding."""
    return logits[inputs["attention_mask"].bool()] if "attention_mask" in inputs else logits.flatten(0, 1)


def each_label(logits: "Tensor", inputs: "Inputs") -> "Tensor":
    """Texts x labels x (no, yes)."""
    import torch

    return torch.stack([-logits, logits], -1)


def replacement_logits(logits: "Tensor", inputs: "Inputs") -> "Tensor":
    """Tokens x (original, replaced)."""
    import torch

    real = token_logits(logits, inputs)
    return torch.stack([-real, real], -1)


def answerable(inputs: "Inputs") -> "Tensor":
    """Which tokens may be part of an answer: texts x time."""
    real = inputs["attention_mask"].bool()
    return real & inputs["context_mask"].bool() if "context_mask" in inputs else real


def plain_logits(model: "Callable[..., Any]", inputs: "Inputs") -> "Tensor":
    logits: Tensor = model(**inputs).logits
    return logits


def hidden_states(model: "Callable[..., Any]", inputs: "Inputs") -> "Tensor":
    """Of a network without a head: its last hidden states."""
    states: Tensor = model(**inputs).last_hidden_state
    return states


def span_logits(model: "Callable[..., Any]", inputs: "Inputs") -> "Tensor":
    """Start and end scores of a stock class, which knows no context: closed places are closed here."""
    import torch

    output = model(**{name: tensor for name, tensor in inputs.items() if name != "context_mask"})
    scores = torch.stack([output.start_logits, output.end_logits], dim=1)  # texts x 2 x time
    return scores.masked_fill(~answerable(inputs)[:, None], CLOSED)


PIPELINE = """\
from transformers import pipeline

classify = pipeline("text-classification", model="{folder}"{trust})
print(classify("a text"))
"""
SEVERAL = """\
from transformers import pipeline

classify = pipeline("text-classification", model="{folder}"{trust}, top_k=None)
thresholds = getattr(classify.model.config, "thresholds", {{}})
scores = classify(["a text"])[0]  # a probability for every label
print([each["label"] for each in scores if each["score"] > thresholds.get(each["label"], 0.5)])
"""
TAGS = """\
from transformers import pipeline

tag = pipeline("token-classification", model="{folder}"{trust}, aggregation_strategy="first")
print(tag("a text with a name"))
"""
CHOOSE = """\
import torch
from transformers import AutoModelForMultipleChoice, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{folder}"{trust})
model = AutoModelForMultipleChoice.from_pretrained("{folder}"{trust})
text, choices = "a text", ["{joint}one way on", "{joint}another way on"]
inputs = tokenizer([text] * len(choices), choices, padding=True, return_tensors="pt")
with torch.no_grad():
    scores = model(**{{name: tensor[None] for name, tensor in inputs.items()}}).logits[0]  # one text x choices x time
print(choices[scores.argmax()])
"""
ANSWER = """\
import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{folder}"{trust})
model = AutoModelForQuestionAnswering.from_pretrained("{folder}"{trust})
question, context = "a question", "{joint}a text in which the answer stands"
inputs = tokenizer(question, context, truncation="only_second", return_tensors="pt")
with torch.no_grad():
    found = model(**inputs)
places = [place for place, part in enumerate(inputs.sequence_ids()) if part == 1]  # tokens of the context
start = places[int(found.start_logits[0, places].argmax())]
places = [place for place in places if place >= start]
end = places[int(found.end_logits[0, places].argmax())]
print(context[inputs.token_to_chars(start).start : inputs.token_to_chars(end).end])
"""
CONTINUE = """\
from transformers import pipeline

write = pipeline("text-generation", model="{folder}"{trust})
print(write("Once upon a time", max_new_tokens=20, do_sample=False)[0]["generated_text"])
"""
FILL = """\
from transformers import pipeline

fill = pipeline("fill-mask", model="{folder}"{trust})
print(fill(f"one {{fill.tokenizer.mask_token}} here", top_k=3))
"""
DOUBT = """\
import torch
from transformers import AutoModelForPreTraining, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{folder}"{trust})
model = AutoModelForPreTraining.from_pretrained("{folder}"{trust})
with torch.no_grad():
    logits = model(**tokenizer("a text", return_tensors="pt")).logits  # above 0 where a token seems to be replaced
print(logits)
"""
EMBED = """\
import torch
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{folder}"{trust})
model = AutoModel.from_pretrained("{folder}"{trust})
with torch.no_grad():
    states = model(**tokenizer("a text", return_tensors="pt")).last_hidden_state  # texts x tokens x width
print(states.shape)
"""
SENTENCES = """\
import torch
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{folder}"{trust})
model = AutoModel.from_pretrained("{folder}"{trust})
inputs = tokenizer(["a text", "another one"], padding=True, truncation=True, return_tensors="pt")
with torch.no_grad():
    states = model(**inputs).last_hidden_state  # texts x tokens x width; pool them as 1_Pooling/config.json says
print(states.shape)
"""
ONNX_BEGIN = """\
import numpy as np
import onnxruntime
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{folder}")
session = onnxruntime.InferenceSession("{folder}/model.onnx")
"""
ONNX_LABELS = (
    ONNX_BEGIN.replace("import numpy as np\n", "")
    + """\
inputs = tokenizer(["a text", "another one"], padding=True, truncation=True, return_tensors="np")
logits = session.run(["logits"], dict(inputs))[0]  # texts x labels; the names of the labels are in config.json
print(logits)
"""
)
ONNX_SEVERAL = (
    ONNX_BEGIN.replace("import numpy as np\n", "import json\n\nimport numpy as np\n")
    + """\
config = json.load(open("{folder}/config.json"))
inputs = tokenizer(["a text", "another one"], padding=True, truncation=True, return_tensors="np")
names = [needed.name for needed in session.get_inputs()]
logits = session.run(["logits"], {{name: inputs[name] for name in names}})[0]  # texts x labels
for probabilities in 1 / (1 + np.exp(-logits)):
    named = zip(config["id2label"].values(), probabilities)
    print([label for label, p in named if p > config.get("thresholds", {{}}).get(label, 0.5)])
"""
)
ONNX_TOKENS = (
    ONNX_BEGIN.replace("import numpy as np\n", "")
    + """\
inputs = tokenizer(["a text", "another one"], padding=True, truncation=True, return_tensors="np")
names = [needed.name for needed in session.get_inputs()]
logits = session.run(["logits"], {{name: inputs[name] for name in names}})[0]  # for every token
print(logits.shape)
"""
)
ONNX_SENTENCES = (
    ONNX_BEGIN.replace("import numpy as np\n", "")
    + """\
inputs = tokenizer(["a text", "another one"], padding=True, truncation=True, return_tensors="np")
names = [needed.name for needed in session.get_inputs()]
states = session.run(["last_hidden_state"], {{name: inputs[name] for name in names}})[0]  # texts x tokens x width
print(states.shape)  # pool them as 1_Pooling/config.json says
"""
)
ONNX_CHOOSE = (
    ONNX_BEGIN
    + """\
text, choices = "a text", ["{joint}one way on", "{joint}another way on"]
inputs = tokenizer([text] * len(choices), choices, padding=True, return_tensors="np")
inputs = {{name: values[np.newaxis] for name, values in inputs.items()}}  # one text x choices x time
scores = session.run(["logits"], inputs)[0][0]
print(choices[scores.argmax()])
"""
)
ONNX_ANSWER = (
    ONNX_BEGIN
    + """\
question, context = "a question", "{joint}a text in which the answer stands"
inputs = tokenizer(question, context, truncation="only_second", return_tensors="np")
in_context = np.array([[part == 1 for part in inputs.sequence_ids()]], dtype=np.int64)
given = {{**inputs, "context_mask": in_context}}
names = [needed.name for needed in session.get_inputs()]
scores = session.run(["logits"], {{name: given[name] for name in names}})[0]  # texts x (start, end) x time
places = np.flatnonzero(in_context)  # tokens of the context
start = places[scores[0, 0, places].argmax()]
places = places[places >= start]
end = places[scores[0, 1, places].argmax()]
print(context[inputs.token_to_chars(start).start : inputs.token_to_chars(end).end])
"""
)
ONNX_CONTINUE = (
    ONNX_BEGIN
    + """\
ids = tokenizer("Once upon a time", return_tensors="np")["input_ids"]
for _ in range(20):  # without a cache: every step computes the whole text again
    given = {{"input_ids": ids, "attention_mask": np.ones_like(ids)}}
    names = [needed.name for needed in session.get_inputs()]
    logits = session.run(["logits"], {{name: given[name] for name in names}})[0]  # texts x time x vocabulary
    ids = np.concatenate([ids, logits[:, -1:].argmax(-1)], axis=1)
print(tokenizer.decode(ids[0]))
"""
)


@dataclass(frozen=True)
class TaskExport:
    """A kind of task, as far as an export is concerned."""

    tag: str
    """What the hub calls the task."""
    usage: str
    """How a user runs a checkpoint, with {folder}, {trust} and {joint}, for the model card."""
    onnx_usage: str
    pools: bool = False
    """Whether its head reads one vector per text."""
    asks: bool = False
    """Whether a question stands before a text, and the answer in the text."""
    axes: tuple[str, ...] = ("batch", "sequence")
    """What the dimensions of the inputs are."""
    select_logits: "Select" = all_logits
    """The logits that mean something, of logits and inputs."""
    select_answers: "Select" = all_logits
    """The logits of which the largest in the last dimension is the answer."""
    answer: "Callable[[Callable[..., Any], Inputs], Tensor]" = plain_logits
    """What a network of ours answers, as one tensor."""
    stock_logits: "Callable[[Callable[..., Any], Inputs], Tensor]" = plain_logits
    """A stock class's answer in our shape."""
    output: str = "logits"
    """What the answer is called in an ONNX file."""
    as_logits: "Callable[[Any, Callable[[Inputs], Tensor], Inputs], Tensor]" = lambda network, run, inputs: run(inputs)
    """The network, what an export of it computes, and inputs -> the network's logits for these inputs."""
    write_files: "Callable[[Any, Path], None] | None" = None
    """Writes what another library needs beside the weights of a network."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What a user must know, by format, for the model card."""


CLOSE_YOURSELF = """\
The network was trained and measured on places inside the context only, as in the code above; a stock class also scores
the question and padding.
"""
NONE = """\
If it was trained with questions that have no answer (SQuAD 2.0), the first token stands for "none": there is an answer
when the best start and end together score higher than the first token as start and end.
"""
WITHOUT_CACHE = """\
The file has no cache of keys and values: each new token costs a pass over the whole text. To generate fast, export to
`hf`, `hf-padded` or `compact`.
"""
FIRST_PIECE = """\
A word has the tag of its first token; what the network says about the other tokens of a word was not trained.
"""
THRESHOLDS = """\
A text has every label whose probability, the sigmoid of its logit, is above the label's threshold in `config.json`.
They were chosen on validation rows; 0.5 where a label is too rare there, and of a network that `train` wrote.
"""
LABELS = TaskExport(tag="text-classification", usage=PIPELINE, onnx_usage=ONNX_LABELS, pools=True)
MULTI_LABEL = TaskExport(
    tag="text-classification",
    usage=SEVERAL,
    onnx_usage=ONNX_SEVERAL,
    pools=True,
    select_answers=each_label,
    notes=dict.fromkeys(("hf", "hf-padded", "compact", "onnx"), THRESHOLDS),
)
MULTIPLE_CHOICE = TaskExport(
    tag="multiple-choice", usage=CHOOSE, onnx_usage=ONNX_CHOOSE, axes=("batch", "choices", "sequence"), pools=True
)
QUESTION_ANSWERING = TaskExport(
    tag="question-answering",
    usage=ANSWER,
    onnx_usage=ONNX_ANSWER,
    asks=True,
    select_logits=lambda logits, inputs: logits.mT[answerable(inputs)],  # places x (start, end)
    stock_logits=span_logits,
    notes={"hf": CLOSE_YOURSELF + NONE, "hf-padded": CLOSE_YOURSELF + NONE, "compact": NONE, "onnx": NONE},
)
TOKEN_CLASSIFICATION = TaskExport(
    tag="token-classification",
    usage=TAGS,
    onnx_usage=ONNX_TOKENS,
    select_logits=token_logits,
    select_answers=token_logits,
    notes=dict.fromkeys(("hf", "hf-padded", "compact", "onnx"), FIRST_PIECE),
)
LANGUAGE_MODELLING = TaskExport(
    tag="text-generation",
    usage=CONTINUE,
    onnx_usage=ONNX_CONTINUE,
    select_logits=token_logits,
    select_answers=token_logits,
    notes={"onnx": WITHOUT_CACHE},
)

ENCODE = """\
The folder is one of sentence-transformers, too, which pools and normalises as the original does:

```python
from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("{folder}"{trust}).encode(["a text", "another one"])
```
"""
POOL_YOURSELF = """\
The file gives the states of all tokens; how they become one vector per text stands in `1_Pooling/config.json` and
`modules.json`.
"""


def sentence_vectors(network: "Any", run: "Callable[[Inputs], Tensor]", inputs: "Inputs") -> "Tensor":
    """Vectors of rows of several texts, rows x texts x width, made of the states that an export gives for texts."""
    ids = inputs["input_ids"]
    flat = {name: tensor.flatten(0, -2) for name, tensor in inputs.items()}
    vectors: Tensor = network.vectors(run(flat), flat["attention_mask"])
    return vectors.unflatten(0, (len(ids), -1))


def write_sentence_files(network: "Any", folder: "Path") -> None:
    """What sentence-transformers reads beside the weights."""
    from archwright.networks.load import max_length_of
    from archwright.networks.sentence_encoder import write_sentence_encoder

    config, room = network.config, max_length_of(network)
    sentence = config.sentence or {}
    longest = min(sentence.get("max_seq_length") or room, room)
    write_sentence_encoder(
        folder,
        pooling=config.pooling,
        width=config.stream_width,
        sentence={**sentence, "max_seq_length": longest},
    )


EMBEDDINGS = TaskExport(
    tag="sentence-similarity",
    usage=SENTENCES,
    onnx_usage=ONNX_SENTENCES,
    select_logits=token_logits,
    select_answers=lambda states, inputs: states.new_zeros(0, 1),
    answer=hidden_states,
    stock_logits=hidden_states,
    output="last_hidden_state",
    as_logits=sentence_vectors,
    write_files=write_sentence_files,
    notes={"hf": ENCODE, "hf-padded": ENCODE, "compact": ENCODE, "onnx": POOL_YOURSELF},
)


@dataclass(frozen=True, kw_only=True)
class PretrainedExport(TaskExport):
    """What an encoder answers that was pre-trained and has no task yet."""

    auto: str
    """The auto class of transformers that loads it."""
    select_logits: "Select" = token_logits


WITHOUT_TASK: dict[str, PretrainedExport] = {
    "mlm": PretrainedExport(
        auto="AutoModelForMaskedLM",
        tag="fill-mask",
        usage=FILL,
        onnx_usage=ONNX_TOKENS,
        select_answers=token_logits,
    ),
    "electra": PretrainedExport(
        auto="AutoModelForPreTraining",
        tag="token-classification",
        usage=DOUBT,
        onnx_usage=ONNX_TOKENS,
        select_answers=replacement_logits,
    ),
    "features": PretrainedExport(
        auto="AutoModel",
        tag="feature-extraction",
        usage=EMBED,
        onnx_usage=ONNX_TOKENS,
        select_answers=lambda states, inputs: states.new_zeros(0, 1),
        answer=hidden_states,
    ),
}
"""By the loss it was pre-trained with; "features", its hidden states, with any other loss and without a head."""


def task_export(kind: str) -> TaskExport:
    """How networks of a kind of task, or one of WITHOUT_TASK, are exported and used."""
    record: TaskExport = WITHOUT_TASK[kind] if kind in WITHOUT_TASK else TASK_KINDS[kind].export.load()
    return record
