"""From a survey and a census to shares of each state: ``vote, sex, age, state``, a row a person."""

import pgmult
from pgmult.regression import AdditiveRegression

rows = pgmult.read("survey.csv").rows("vote ~ sex + s(age) + (1 | state)")
run = pgmult.sample(AdditiveRegression(), rows, draws=200, chains=2, random_seed=1)
print(run.report())  # what differs, how sure, and whether the model beats the overall shares
shares = run.poststratify(pgmult.read("census.csv"), by="state", weight="people")
shares.table().save("shares.csv")
run.effects("age").plot().figure.savefig("age.png")
