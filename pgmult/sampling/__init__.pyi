from pgmult.sampling.chains import Sweep as Sweep
from pgmult.sampling.diagnostics import ConvergenceWarning as ConvergenceWarning
from pgmult.sampling.driver import resume as resume
from pgmult.sampling.driver import sample as sample
from pgmult.sampling.origin import Origin as Origin
from pgmult.sampling.posterior import Posterior as Posterior
from pgmult.sampling.posterior import load as load
from pgmult.sampling.summary import Summary as Summary
