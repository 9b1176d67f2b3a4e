from pgmult.topics.fits.new_documents import FoldedIn as FoldedIn
from pgmult.topics.fits.new_documents import NewDocuments as NewDocuments
from pgmult.topics.fits.refitting import refit as refit
from pgmult.topics.fits.stick_breaking import VariationalTopics as VariationalTopics
from pgmult.topics.fits.stick_breaking import fit_cavi as fit_cavi
from pgmult.topics.fits.stick_breaking import fit_svi as fit_svi
