"""Time skextra beside what people use today: ``python -m benchmarks --quick``."""
