"""Is this sampler right? Tests of Markov chain Monte Carlo code, for any model.

A sampler with a wrong sign still runs, converges and looks plausible. Four tests detect it. They
need only the `pgmult.core.typing.Model` protocol and tiny data, since bugs show with few rows as
well as with many.

**The conditional ratio.** For a block x of the variables and everything else y,
p(x, y) = p(x | y) p(y), so

    log p(x, y) - log p(x | y)

does not depend on x. `conditional_ratio` evaluates it at several x. It needs no randomness, holds
to rounding, and names the block that is wrong.

**The joint distribution test** (Geweke 2004). Let p(s) be the prior of a state and p(d | s) the
distribution of the data. If s_0 ~ p(s), and then for l = 1, 2, ...

    d_l ~ p(d | s_{l-1})        `simulate`
    s_l ~ T(. | s_{l-1}, d_l)   `step`

and T leaves p(s | d_l) invariant, then every pair (s_l, d_l) has exactly the joint distribution
p(s) p(d | s), as has the pair (s_0, d_1) that comes before any step. So for every function g

    mean of g(s_1, d_1), ..., g(s_L, d_L)  -  g(s_0, d_1)

has expectation zero. `geweke` runs R independent chains of L sweeps, each started from the prior,
and asks with a t-test whether the R differences average to zero. There is no autocorrelation
to estimate and no burn-in, because the chains are independent and stationary from the start.

Priors of variances have heavy tails, whose second moments may not exist, so the functions g are
made of ranks: with u in (0, 1) the rank of a scalar among all the draws of the run, each scalar
gives its *shift* sqrt(3) (2u - 1) and its *spread* sqrt(5) (6u^2 - 6u + 1), and some pairs of
these give their product. These are the first moments, second moments and cross
moments of Geweke's paper, bounded and without scale. That u is estimated changes the differences
only at second order, because both sides of each difference have the same distribution.

**Simulation-based calibration** (Talts et al. 2018; data-dependent quantities: Modrák et al. 2023).
If s* ~ p(s), d ~ p(d | s*), and s_1, ..., s_M are independent draws from p(s | d), then the rank
of g(s*, d) among the g(s_m, d) is uniform on 0, ..., M. `sbc` starts its chains at `init`, so it
also sees what the joint distribution test cannot: a chain that leaves the posterior invariant and
never reaches it. The ranks are judged by the smooth test of Neyman (1937), the sum of the squares
of their first four Legendre components, which is chi-square with four degrees of freedom.

**The coin.** Draw two states from the prior, toss a coin for which of them simulates the data. By
Bayes' rule the log odds of the coin given the data are the difference of the two log likelihoods.
`likelihood` counts how often the less likely state was the true one and compares with the exact
distribution of that number, which tests that `simulate` and `log_likelihood` agree.

A verdict follows one *sequential rule*. A run has the p-value p = (number of statistics) times
(smallest p-value of a statistic), Bonferroni's. It passes if p >= level, fails if p < level**2, and
is otherwise decided by a fresh run of four times the length, which passes if p >= level. Gross
errors are found early: `geweke` also looks at the first 71 % of a run, its half, 35 %, its quarter
and so on, down to 60 replicates and 16 times at most, and fails it there if p < level**3 / 17. A
right sampler fails with probability at most 2 * level**2: 0.0002 by default.

**How many replicates.** A bias of d standard deviations of a statistic shows in about 10 / d**2
replicates. A subtle mutant, half a degree of freedom too many in a variance of four rows, is a
tenth of a standard deviation away: 300 replicates let it through, and the 1000 that `check_model`
makes do not.

To check the tests themselves, `mutant` makes deliberately broken models, and `rejects` asserts that
a check refuses one.

>>> import pgmult
>>> from pgmult.testing import check_model, mutant, rejects
>>> model = pgmult.topics.CorrelatedTopics(num_topics=2, word_concentration=1.0)
>>> data = pgmult.topics.as_corpus([[2, 1, 0], [0, 0, 0], [1, 0, 3]])
>>> check_model(model, data, replicates=200).passed
True
>>> stuck = mutant(model, step=lambda self, rng, state, data: state)
>>> rejects(check_model, stuck, data)[:31]
'step must move every variable, '

References
----------
Geweke, J. (2004). Getting it right: joint distribution tests of posterior simulators.
Journal of the American Statistical Association 99, 799-804.
Talts, S., Betancourt, M., Simpson, D., Vehtari, A., Gelman, A. (2018). Validating Bayesian
inference algorithms with simulation-based calibration. arXiv:1804.06788.
Modrák, M. et al. (2023). Simulation-based calibration checking for Bayesian computation: the
choice of test quantities shapes sensitivity. Bayesian Analysis.
Grosse, R., Duvenaud, D. (2014). Testing MCMC code. arXiv:1412.5218. (Conditional ratios.)
Neyman, J. (1937). "Smooth test" for goodness of fit. Skandinavisk Aktuarietidskrift 20, 149-199.
"""

from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
