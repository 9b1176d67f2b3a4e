"""From a CSV of counts to a figure of their shares: ``year, state, name, n``, a row a count."""

import pgmult
from pgmult.datasets import us_states
from pgmult.fields import MultinomialGP, covariances

ahead = {"year": range(1990, 2011), "state": ["NY"] * 21}
data = pgmult.read("names.csv").field(
    ["year", "state"], "name", count="n", places={"state": us_states()}, new_inputs=ahead
)  # fmt: skip
law = covariances.Matern(1.5, 10.0, active=[0]) * covariances.GreatCircle(1000.0, 1, 2)
posterior = pgmult.sample(MultinomialGP(1.0 * law), data, draws=200, chains=2, random_seed=1)
found = posterior.predict(inputs="new")
found.at(state="NY").plot(along="year").figure.savefig("names.png")
