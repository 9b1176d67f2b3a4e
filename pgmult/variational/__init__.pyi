from pgmult.variational.ascent import Fit as Fit
from pgmult.variational.fits import GaussianRows as GaussianRows
from pgmult.variational.fits import fit_sites as fit_sites
from pgmult.variational.sites import CountSite as CountSite
from pgmult.variational.sites import LogisticSite as LogisticSite
from pgmult.variational.sites import Site as Site
