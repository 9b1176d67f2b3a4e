"""From a CSV of visits to a forecast: ``patient, day, state``, a row a visit."""

import pgmult
from pgmult.sequences import MultinomialLDS

table = pgmult.read("visits.csv")
data = table.sequences("state", sequence="patient", time="day", every="day")
model = MultinomialLDS(state_dim=4)
posterior = pgmult.sample(
    model, data, draws=400, tune=400, chains=2, random_seed=1, keep=[*model.default_keep, "states"]
)
ahead, before = posterior.forecast(14), posterior.predict()
ahead.plot(history=before).figure.savefig("visits.png", dpi=150)
