import os

# scikit-learn and SciPy read this when they are imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
