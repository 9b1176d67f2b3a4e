"""From a CSV of visits to a forecast: ``patient, day, state``, a row a visit."""

import pgmult
from pgmult.datasets import read_columns
from pgmult.sequences import MultinomialLDS, StepProbs, forecast, from_long, plots

table = read_columns("visits.csv")
data = from_long(table, symbol="state", sequence="patient", time="day", every="day")
model = MultinomialLDS(state_dim=4)
posterior = pgmult.sample(
    model, data, draws=400, tune=400, chains=2, random_seed=1, keep=[*model.default_keep, "states"]
)
ahead, before = forecast(posterior, data, steps=14), StepProbs.of(posterior, data)
plots.forecast_fan(ahead, data, history=before).figure.savefig("visits.png", dpi=150)
