# Every target makes the environment that it needs. ARGS goes to the command:
#   make test ARGS="-k ensemble"      make bench ARGS=--quick
PYTHON ?= python3
ARGS ?=
RUN := .venv/bin/python -m

.PHONY: demo test lint doc bench clean
.NOTPARALLEL:

demo: .venv/plot.stamp .venv/torch.stamp
	$(RUN) skextra $(ARGS)

# One BLAS thread for each of the two workers.
test: .venv/all.stamp
	SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
		$(RUN) pytest -n 2 $(ARGS)

lint: .venv/dev.stamp
	$(RUN) ruff check .
	$(RUN) ruff format --check .

doc: .venv/all.stamp
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
		$(RUN) sphinx -W --keep-going -b html doc doc/_build/html $(ARGS)

bench: .venv/all.stamp
	$(RUN) benchmarks $(ARGS)

clean:
	rm -rf .venv doc/_build doc/api/generated doc/gallery doc/generated
	rm -rf benchmarks/scratch skextra-demo .hypothesis .pytest_cache .ruff_cache
	find skextra tests benchmarks doc examples -name __pycache__ -type d -prune -exec rm -rf {} +

# .venv/NAME.stamp installs the extra NAME. A change of pyproject.toml or
# constraints.txt makes the environment anew.
.venv/%.stamp: .venv/made
	$(RUN) pip install --quiet -c constraints.txt -e ".[$*]"
	touch $@

.venv/made: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv
	touch $@
