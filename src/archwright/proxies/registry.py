"""All proxies, one record each, without loading torch: what each one computes, needs and cites."""

from archwright.proxies.formulas.discovered import load_discovered_proxies
from archwright.proxies.proxy import Proxy, total
from archwright.registry import Registry

FORWARD, LOSS, INPUTS, NOISE = ("forward",), ("loss",), ("inputs",), ("inputs", "noise")

SERIANNI = "Serianni and Kalita 2023"
ABDELFATTAH = "Abdelfattah et al. 2021"
MELLOR = "Mellor et al. 2021"
CELOTTI = f"Celotti et al. 2020; {SERIANNI}, Section 3.1"
ZHOU = "Zhou et al. 2022"
LPZERO = "LPZero"
WPCA = "W-PCA"


def count(name: str, field: str, description: str) -> Proxy:
    return Proxy(name, description, "archwright.proxies.counts:count", (field,), origin="count")


COUNTS = (
    count("parameters", "parameters", "parameters, all"),
    count("nonembedding", "nonembedding", "parameters without embeddings"),
    count("attention_parameters", "attention", "parameters of attention"),
    count("ffn_parameters", "ffn", "parameters of FFNs"),
    count("flops", "flops", "FLOPs of a forward pass"),
    count("depth", "depth", "number of layers"),
    Proxy("depth_width", "number of layers, then width", "archwright.proxies.counts:depth_width", origin="count"),
    Proxy("random", "a random number, the baseline of baselines", "archwright.proxies.counts:random"),
)


def whole(
    name: str,
    function: str,
    passes: tuple[str, ...],
    citation: str,
    description: str,
    *,
    roles: tuple[str, ...] = (),
    arguments: tuple[float, ...] = (),
    origin: str = "published",
) -> Proxy:
    """One number of the whole network: there is nothing to normalise."""
    function = f"archwright.proxies.{function}"
    return Proxy(name, description, function, arguments, citation, passes, roles, origin)


def summed(
    name: str, function: str, passes: tuple[str, ...], citation: str, description: str, *, roles: tuple[str, ...] = ()
) -> Proxy:
    """A sum over linears, layers or heads; its mean is another proxy, named ..._normalised."""
    function = f"archwright.proxies.{function}"
    return Proxy(name, description, function, (), citation, passes, roles, "published", join=total)


# fmt: off
SUMMED = (
    summed("grad_norm", "gradients:grad_norm", LOSS, ABDELFATTAH, "||g||_F over linears"),
    summed("snip", "gradients:snip", LOSS, f"Lee et al. 2019; {LPZERO} Eq. 14", "|w g| over linears"),
    summed("plain", "gradients:plain", LOSS, ABDELFATTAH, "w g over linears"),
    summed("grasp", "gradients:grasp", ("hessian",), f"Wang et al. 2020; {LPZERO} Eq. 15", "-(H g) w over linears"),
    summed(
        "fisher", "gradients:fisher", LOSS, "Turner et al. 2020",
        "half the mean of (sum over time of a dL/da)^2", roles=("activations",),
    ),
    summed("fisher_product", "gradients:fisher_product", LOSS, f"{LPZERO} Table 1", "a dL/da", roles=("activations",)),
    summed("synflow", "gradients:synflow", ("synflow",), "Tanaka et al. 2020", "|w| dR/d|w| over linears"),
    summed("synflow_loss", "gradients:plain", LOSS, f"{LPZERO} Table 1", "w g over linears, the same as plain"),
    summed("logsynflow", "gradients:logsynflow", LOSS, f"{LPZERO} Table 1", "w log|g| over linears"),
    summed("logsynflow_absolute", "gradients:logsynflow_absolute", LOSS, f"{LPZERO} Eq. 16", "w |log|g|| over linears"),
    summed(
        "logsynflow_freerea", "gradients:logsynflow_freerea", ("synflow",), "Cavagnero et al. 2023",
        "|w| log(1 + dR/d|w|) over linears",
    ),
    summed(
        "synaptic_saliency", "gradients:synaptic_saliency", LOSS, f"Tanaka et al. 2020; {SERIANNI}, Eq. 1",
        "w g over all parameters",
    ),
    summed(
        "synaptic_saliency_published", "gradients:synaptic_saliency_published", LOSS, f"{SERIANNI}, public code",
        "|w g| over FFN linears",
    ),
    summed(
        "synaptic_diversity", "gradients:synaptic_diversity", LOSS, f"{ZHOU}; {SERIANNI}, Section 3.4",
        "||g||_nuc ||w||_nuc over attention linears",
    ),
    summed(
        "synaptic_diversity_norm", "gradients:synaptic_diversity_norm", LOSS, f"{LPZERO} Eq. 6",
        "||g||_F ||w||_nuc over attention linears",
    ),
    summed("dss", "gradients:dss", LOSS, ZHOU, "synaptic_diversity + synaptic_saliency_published"),
    summed(
        "activation_distance", "patterns:activation_distance", FORWARD, f"{MELLOR}a; {SERIANNI}, Section 3.3",
        "Hamming distance of which units are on, over pairs of examples", roles=("activations",),
    ),
    summed(
        "activation_distance_published", "patterns:activation_distance_published", FORWARD, f"{SERIANNI}, public code",
        "agreement of which units are on, over pairs of tokens of the first example", roles=("activations",),
    ),
    summed(
        "hidden_saliency", "gradients:hidden_saliency", LOSS, f"{SERIANNI}, public code",
        "|h dL/dh| over hidden states", roles=("output",),
    ),
    summed(
        "attention_confidence", "heads:attention_confidence", FORWARD, f"Voita et al. 2019; {SERIANNI}, Section 3.6",
        "|largest feature| of a head's output, mean over tokens, over heads", roles=("context",),
    ),
    summed(
        "attention_confidence_published", "heads:attention_confidence_published", FORWARD, f"{SERIANNI}, public code",
        "largest over tokens of each projection, mean, over projections", roles=("projections",),
    ),
    summed(
        "softmax_confidence", "heads:softmax_confidence", FORWARD, f"Behnke and Heafield 2020; {SERIANNI}, Section 3.6",
        "largest attention probability, mean over tokens, over heads", roles=("probabilities",),
    ),
    summed(
        "softmax_confidence_published", "heads:softmax_confidence_published", FORWARD, f"{SERIANNI}, public code",
        "largest attention probability, mean over tokens and heads, over layers", roles=("probabilities",),
    ),
    summed(
        "head_importance", "heads:head_importance", LOSS, f"Michel et al. 2019; {SERIANNI}, Section 3.6",
        "|Att . dL/dAtt| over heads", roles=("context",),
    ),
    summed(
        "head_importance_gradient", "heads:head_importance_gradient", LOSS, f"{LPZERO} Eq. 13",
        "|dL/dAtt| over heads", roles=("context",),
    ),
    summed(
        "head_importance_published", "gradients:head_importance_published", LOSS, f"{SERIANNI}, public code",
        "|w g| over attention linears",
    ),
    summed(
        "v_pca", "pca:v_pca", FORWARD, f"{WPCA} Eq. 1, 2",
        "components of the pre-activations for 99 %", roles=("pre_activation",),
    ),
    summed(
        "lpzero_flexibert", "lpzero:lpzero_flexibert", FORWARD, f"{LPZERO} Eq. 2",
        "(1/H)^2 + log softmax ||A||_F, the second always 0", roles=("projections", "activations"),
    ),
    summed(
        "lpzero_flexibert_layers", "lpzero:lpzero_flexibert_layers", FORWARD, f"{LPZERO} Eq. 2, softmax over layers",
        "(1/H)^2 + log softmax of the layers' ||A||_F", roles=("projections", "activations"),
    ),
    summed(
        "eznas", "lpzero:eznas", LOSS, f"Akhauri et al. 2022, as in {LPZERO}'s code",
        "sigmoid log|det(sign g sign g^T)|",
    ),
)

WHOLE = (
    whole(
        "jacobian_covariance", "correlations:jacobian_covariance", INPUTS, f"{MELLOR}b; {SERIANNI}, Section 3.1",
        "-sum(log(l + k) + 1/(l + k)) of the correlation between examples' input gradients",
    ),
    whole(
        "jacobian_cosine", "correlations:jacobian_cosine", INPUTS, CELOTTI,
        "1 - sum |J J^T - I|^(1/20) / (N^2 - N), J normalised",
    ),
    whole(
        "small_noise_jacobian", "correlations:noise_change", NOISE, CELOTTI,
        "1 - |s(e) - s(e + 0.1 noise)|", arguments=(0.1,),
    ),
    whole(
        "small_noise_jacobian_cosine", "correlations:noise_change_cosine", NOISE, CELOTTI,
        "the same of the cosine", arguments=(0.1,),
    ),
    whole(
        "large_noise_jacobian", "correlations:noise_change", NOISE, CELOTTI,
        "1 - |s(e) - s(e + 10 noise)|", arguments=(10.0,),
    ),
    whole(
        "large_noise_jacobian_cosine", "correlations:noise_change_cosine", NOISE, CELOTTI,
        "the same of the cosine", arguments=(10.0,),
    ),
    whole(
        "more_noised_jacobian", "correlations:noise_product", NOISE, CELOTTI,
        "s(e) times s at noise 0.1, 10 and 100",
    ),
    whole("more_noised_jacobian_cosine", "correlations:noise_product_cosine", NOISE, CELOTTI, "the same of the cosine"),
    *(
        whole(
            f"hidden_covariance_{number}", "correlations:unit_score", FORWARD, f"{SERIANNI}, Section 3.5",
            f"-sum(log(l + k) + 1/(l + k)) of the correlation between hidden units, layer {number}",
            roles=("output",), arguments=(number,),
        )
        for number in (1, 2, 3)
    ),
    *(
        whole(
            f"hidden_covariance_entering_{number}", "correlations:entering_unit_score", FORWARD,
            f"{SERIANNI}, public code", f"the same of the state that enters each step, layer {number}",
            roles=("output",), arguments=(number,),
        )
        for number in (1, 2, 3)
    ),
    whole(
        "nwot", "patterns:nwot", FORWARD, f"{MELLOR}a; {LPZERO} Eq. 3",
        "log|K|, K the agreement of examples", roles=("activations",),
    ),
    whole(
        "hidden_covariance", "correlations:mean_unit_score", FORWARD, f"{SERIANNI}, Section 3.5",
        "the same, mean over all layers", roles=("output",), origin="own",
    ),
    whole(
        "hidden_covariance_inputs", "correlations:mean_example_score", FORWARD, f"{SERIANNI}, Section 3.5, its text",
        "the same of the correlation between examples, mean over layers", roles=("output",),
    ),
    whole("w_pca", "pca:w_pca", FORWARD, f"{WPCA} Eq. 4", "parameters x v_pca", roles=("pre_activation",)),
    whole(
        "w_pca_nonembedding", "pca:w_pca_nonembedding", FORWARD, f"{WPCA} Eq. 4",
        "nonembedding x v_pca", roles=("pre_activation",), origin="own",
    ),
    whole(
        "lpzero_gpt2", "lpzero:lpzero_gpt2", LOSS, f"{LPZERO}, public code",
        "mean w^2 + mean softmax(g)^2, mean over linears, layers",
    ),
)
# fmt: on

RECORDS = (*COUNTS, *SUMMED, *WHOLE, *(proxy.mean_form() for proxy in SUMMED))
PROXIES: Registry[Proxy] = Registry(
    "proxy", {**load_discovered_proxies(), **{proxy.name: proxy for proxy in RECORDS}}, group="archwright.proxies"
)
