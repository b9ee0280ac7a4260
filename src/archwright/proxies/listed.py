"""The list of all proxies, without any of their code: what each one is, needs and cites."""

from dataclasses import replace

from archwright.proxies.formulas.discovered import load_discovered
from archwright.proxies.proxy import Proxy, total

ALL_ROLES = ("output", "pre_activation", "activations", "projections", "context", "probabilities")
PASS_NAMES = ("forward", "loss", "inputs", "noise", "synflow", "hessian")
"""As the probe names them; written out here because its room loads torch."""

FORWARD, LOSS, INPUTS, NOISE = ("forward",), ("loss",), ("inputs",), ("inputs", "noise")

SERIANNI = "Serianni and Kalita 2023"
ABDELFATTAH = "Abdelfattah et al. 2021"
MELLOR = "Mellor et al. 2021"
CELOTTI = f"Celotti et al. 2020; {SERIANNI}, Section 3.1"
ZHOU = "Zhou et al. 2022"
LPZERO = "LPZero"
WPCA = "W-PCA"


def count(name: str, summary: str) -> Proxy:
    return Proxy(f"counts:{name}", "count", (), "", summary)


COUNTS: dict[str, Proxy] = {
    "parameters": count("parameters", "parameters, all"),
    "nonembedding": count("nonembedding", "parameters without embeddings"),
    "attention_parameters": count("attention_parameters", "parameters of attention"),
    "ffn_parameters": count("ffn_parameters", "parameters of FFNs"),
    "flops": count("flops", "FLOPs of a forward pass"),
    "depth": count("depth", "number of layers"),
    "depth_width": count("depth_width", "number of layers, then width"),
    "random": Proxy("counts:random", "own", (), "", "a random number, the baseline of baselines"),
}


def summed(target: str, passes: tuple[str, ...], cite: str, summary: str, *of: str) -> Proxy:
    """A sum over linears, layers or heads, which also has a normalised form."""
    return Proxy(target, "published", passes, cite, summary, of, join=total)


SUMMED: dict[str, Proxy] = {
    "grad_norm": summed("gradients:grad_norm", LOSS, ABDELFATTAH, "||g||_F over linears"),
    "snip": summed("gradients:snip", LOSS, f"Lee et al. 2019; {LPZERO} Eq. 14", "|w g| over linears"),
    "plain": summed("gradients:plain", LOSS, ABDELFATTAH, "w g over linears"),
    "grasp": summed("gradients:grasp", ("hessian",), f"Wang et al. 2020; {LPZERO} Eq. 15", "-(H g) w over linears"),
    "fisher": summed(
        "gradients:fisher", LOSS, "Turner et al. 2020", "half the mean of (sum over time of a dL/da)^2", "activations"
    ),
    "fisher_product": summed("gradients:fisher_product", LOSS, f"{LPZERO} Table 1", "a dL/da", "activations"),
    "synflow": summed("gradients:synflow", ("synflow",), "Tanaka et al. 2020", "|w| dR/d|w| over linears"),
    "synflow_loss": summed("gradients:plain", LOSS, f"{LPZERO} Table 1", "w g over linears, the same as plain"),
    "logsynflow": summed("gradients:logsynflow", LOSS, f"{LPZERO} Table 1", "w log|g| over linears"),
    "logsynflow_absolute": summed("gradients:logsynflow_absolute", LOSS, f"{LPZERO} Eq. 16", "w |log|g|| over linears"),
    "logsynflow_freerea": summed(
        "gradients:logsynflow_freerea", ("synflow",), "Cavagnero et al. 2023", "|w| log(1 + dR/d|w|) over linears"
    ),
    "synaptic_saliency": summed(
        "gradients:synaptic_saliency", LOSS, f"Tanaka et al. 2020; {SERIANNI}, Eq. 1", "w g over all parameters"
    ),
    "synaptic_saliency_published": summed(
        "gradients:synaptic_saliency_published", LOSS, f"{SERIANNI}, public code", "|w g| over FFN linears"
    ),
    "synaptic_diversity": summed(
        "gradients:synaptic_diversity",
        LOSS,
        f"{ZHOU}; {SERIANNI}, Section 3.4",
        "||g||_nuc ||w||_nuc over attention linears",
    ),
    "synaptic_diversity_norm": summed(
        "gradients:synaptic_diversity_norm", LOSS, f"{LPZERO} Eq. 6", "||g||_F ||w||_nuc over attention linears"
    ),
    "dss": summed("gradients:dss", LOSS, ZHOU, "synaptic_diversity + synaptic_saliency_published"),
    "activation_distance": summed(
        "patterns:activation_distance",
        FORWARD,
        f"{MELLOR}a; {SERIANNI}, Section 3.3",
        "Hamming distance of which units are on, over pairs of examples",
        "activations",
    ),
    "activation_distance_published": summed(
        "patterns:activation_distance_published",
        FORWARD,
        f"{SERIANNI}, public code",
        "agreement of which units are on, over pairs of tokens of the first example",
        "activations",
    ),
    "hidden_saliency": summed(
        "gradients:hidden_saliency", LOSS, f"{SERIANNI}, public code", "|h dL/dh| over hidden states", "output"
    ),
    "attention_confidence": summed(
        "heads:attention_confidence",
        FORWARD,
        f"Voita et al. 2019; {SERIANNI}, Section 3.6",
        "|largest feature| of a head's output, mean over tokens, over heads",
        "context",
    ),
    "attention_confidence_published": summed(
        "heads:attention_confidence_published",
        FORWARD,
        f"{SERIANNI}, public code",
        "largest over tokens of each projection, mean, over projections",
        "projections",
    ),
    "softmax_confidence": summed(
        "heads:softmax_confidence",
        FORWARD,
        f"Behnke and Heafield 2020; {SERIANNI}, Section 3.6",
        "largest attention probability, mean over tokens, over heads",
        "probabilities",
    ),
    "softmax_confidence_published": summed(
        "heads:softmax_confidence_published",
        FORWARD,
        f"{SERIANNI}, public code",
        "largest attention probability, mean over tokens and heads, over layers",
        "probabilities",
    ),
    "head_importance": summed(
        "heads:head_importance",
        LOSS,
        f"Michel et al. 2019; {SERIANNI}, Section 3.6",
        "|Att . dL/dAtt| over heads",
        "context",
    ),
    "head_importance_gradient": summed(
        "heads:head_importance_gradient", LOSS, f"{LPZERO} Eq. 13", "|dL/dAtt| over heads", "context"
    ),
    "head_importance_published": summed(
        "gradients:head_importance_published", LOSS, f"{SERIANNI}, public code", "|w g| over attention linears"
    ),
    "v_pca": summed(
        "pca:v_pca", FORWARD, f"{WPCA} Eq. 1, 2", "components of the pre-activations for 99 %", "pre_activation"
    ),
    "lpzero_flexibert": summed(
        "lpzero:lpzero_flexibert",
        FORWARD,
        f"{LPZERO} Eq. 2",
        "(1/H)^2 + log softmax ||A||_F, the second always 0",
        "projections",
        "activations",
    ),
    "lpzero_flexibert_layers": summed(
        "lpzero:lpzero_flexibert_layers",
        FORWARD,
        f"{LPZERO} Eq. 2, softmax over layers",
        "(1/H)^2 + log softmax of the layers' ||A||_F",
        "projections",
        "activations",
    ),
    "eznas": summed(
        "lpzero:eznas", LOSS, f"Akhauri et al. 2022, as in {LPZERO}'s code", "sigmoid log|det(sign g sign g^T)|"
    ),
}
"""Their sum is the proxy, their mean its normalised form."""


def whole(target: str, passes: tuple[str, ...], cite: str, summary: str, *of: str) -> Proxy:
    """One number of the whole network: there is nothing to normalise."""
    return Proxy(target, "published", passes, cite, summary, of)


def own(proxy: Proxy) -> Proxy:
    return replace(proxy, origin="own")


JACOBIAN: dict[str, Proxy] = {
    "jacobian_covariance": whole(
        "jacobian:jacobian_covariance",
        INPUTS,
        f"{MELLOR}b; {SERIANNI}, Section 3.1",
        "-sum(log(l + k) + 1/(l + k)) of the correlation between examples' input gradients",
    ),
    "jacobian_cosine": whole(
        "jacobian:jacobian_cosine", INPUTS, CELOTTI, "1 - sum |J J^T - I|^(1/20) / (N^2 - N), J normalised"
    ),
    "small_noise_jacobian": whole("jacobian:small_noise_jacobian", NOISE, CELOTTI, "1 - |s(e) - s(e + 0.1 noise)|"),
    "small_noise_jacobian_cosine": whole(
        "jacobian:small_noise_jacobian_cosine", NOISE, CELOTTI, "the same of the cosine"
    ),
    "large_noise_jacobian": whole("jacobian:large_noise_jacobian", NOISE, CELOTTI, "1 - |s(e) - s(e + 10 noise)|"),
    "large_noise_jacobian_cosine": whole(
        "jacobian:large_noise_jacobian_cosine", NOISE, CELOTTI, "the same of the cosine"
    ),
    "more_noised_jacobian": whole(
        "jacobian:more_noised_jacobian", NOISE, CELOTTI, "s(e) times s at noise 0.1, 10 and 100"
    ),
    "more_noised_jacobian_cosine": whole(
        "jacobian:more_noised_jacobian_cosine", NOISE, CELOTTI, "the same of the cosine"
    ),
}

HIDDEN: dict[str, Proxy] = {
    f"hidden_covariance_{number}": whole(
        f"hidden:hidden_covariance_{number}",
        FORWARD,
        f"{SERIANNI}, Section 3.5",
        f"-sum(log(l + k) + 1/(l + k)) of the correlation between hidden units, layer {number}",
        "output",
    )
    for number in (1, 2, 3)
} | {
    f"hidden_covariance_entering_{number}": whole(
        f"hidden:hidden_covariance_entering_{number}",
        FORWARD,
        f"{SERIANNI}, public code",
        f"the same of the state that enters each step, layer {number}",
        "output",
    )
    for number in (1, 2, 3)
}

OTHERS: dict[str, Proxy] = {
    "nwot": whole(
        "patterns:nwot", FORWARD, f"{MELLOR}a; {LPZERO} Eq. 3", "log|K|, K the agreement of examples", "activations"
    ),
    "hidden_covariance": own(
        whole(
            "hidden:hidden_covariance",
            FORWARD,
            f"{SERIANNI}, Section 3.5",
            "the same, mean over all layers",
            "output",
        )
    ),
    "hidden_covariance_inputs": whole(
        "hidden:hidden_covariance_inputs",
        FORWARD,
        f"{SERIANNI}, Section 3.5, its text",
        "the same of the correlation between examples, mean over layers",
        "output",
    ),
    "w_pca": whole("pca:w_pca", FORWARD, f"{WPCA} Eq. 4", "parameters x v_pca", "pre_activation"),
    "w_pca_nonembedding": own(
        whole("pca:w_pca_nonembedding", FORWARD, f"{WPCA} Eq. 4", "nonembedding x v_pca", "pre_activation")
    ),
    "lpzero_gpt2": whole(
        "lpzero:lpzero_gpt2", LOSS, f"{LPZERO}, public code", "mean w^2 + mean softmax(g)^2, mean over linears, layers"
    ),
}

NORMALISED: dict[str, Proxy] = {f"{name}_normalised": proxy.normalised() for name, proxy in SUMMED.items()}

PROXIES: dict[str, Proxy] = {**load_discovered(), **COUNTS, **SUMMED, **JACOBIAN, **HIDDEN, **OTHERS, **NORMALISED}
