"""Run the benchmarks of all families."""

import pkgutil

import benchmarks
from benchmarks._harness import main

if __name__ == "__main__":
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    main(*(name for name in found if not name.startswith("_")))
