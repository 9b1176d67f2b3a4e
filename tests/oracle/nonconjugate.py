"""Wang and Blei's generic solvers, as their paper's folder of examples has them."""

import importlib.util
import sys
from pathlib import Path

_PATH = Path(__file__).parents[2] / "examples" / "papers" / "wang2013" / "nonconjugate.py"
_SPEC = importlib.util.spec_from_file_location("wang2013_nonconjugate", _PATH)
_script = sys.modules["wang2013_nonconjugate"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_script)

expand, fit_delta, fit_laplace = _script.expand, _script.fit_delta, _script.fit_laplace
fit_nonconjugate, GaussianRows = _script.fit_nonconjugate, _script.GaussianRows
inverses, trace_gradient = _script.inverses, _script.trace_gradient
