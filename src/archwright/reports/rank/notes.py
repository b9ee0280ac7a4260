"""What the sections of a ranking's page explain to their readers."""

TABLE = (
    "Higher is better for every proxy; signs were fixed before anything was measured. Below a number stands its 95 % "
    "bootstrap interval over architectures. A heading sorts; rest on it to read what it means. Baselines are grey."
)
BARS = (
    "One bar per proxy, with its 95 % interval. Lines: what counting parameters, and what depth and width alone give "
    "(LPZero, Figure 1, had the first). The shaded end cannot be reached, because training itself is noisy. A name "
    "below the plot hides or shows its bars."
)
SCATTER = (
    "One point per architecture (W-PCA, Figure 2; Serianni and Kalita, Figures 1 to 5). Colours and marks are depths: "
    "two clouds that look like a correlation are often just two depths. A small picture below chooses its proxy."
)
CELLS = (
    "The same points, one panel for each depth and width: what a proxy knows beyond these two. The correlation above "
    "each panel is of the points in it, as drawn."
)
NORMALISED = (
    "A sum over layers grows with depth, and depth predicts quality. Divided by the number of summed modules, much of "
    "a proxy's correlation may be gone (Serianni and Kalita, Figures 2, 4 and 11)."
)
PAIR = (
    "Any two scores, left their values, right their ranks (LPZero, Figures 5 and 8); 1 is the smallest. The "
    "correlation is of the points as drawn."
)
ABLATION = (
    "Ten architectures, one per tenth of the trained score, each scored with several initialisations or batches "
    "(Serianni and Kalita, Figures 7 to 10; W-PCA, Figure 4). Boxes that overlap cannot be told apart by one score."
)
XRAY = (
    "For each value of each choice: the mean trained score of the networks that have it, and which share of the best "
    "tenth has it, beside its share of all. Larger points stand for more networks. All panels share one scale."
)
SCREE = (
    "Variance of the first feed-forward linear's output along its principal axes, one line per layer. V-PCA counts the "
    "axes below the dotted line and adds up the layers."
)
ETA = (
    "V-PCA and W-PCA with other shares of the variance than 0.99, from one recording. The axis spreads what is near 1."
)
POWERS = "Rank correlation of parameters^a x V-PCA^b with the trained score. W-PCA is the point where both are 1."
PUBLISHED = (
    "What the papers print, beside what we measured. Numbers of different papers for one proxy stand in one row; where "
    "they differ they are marked."
)
PARITY = (
    "Rank correlation between our scores and the published column of the same metric, architecture by architecture; 1 "
    "is the same order. Then both against the trained score, on the same rows."
)
SCORES = "Higher is better for every proxy. A heading sorts. A dash is a value that could not be computed."
